//! Telling whoever waits that there is a new image. Knows no runtime: waiters are `std` wakers.

use crate::image::Image;
use crate::store::Revision;
use arc_swap::ArcSwap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// The current image and who waits for the next.
#[derive(Debug)]
pub(crate) struct Current {
    image: ArcSwap<Image>,
    waiting: Mutex<Vec<Waker>>,
    ended: AtomicBool,
}

impl Current {
    pub(crate) fn new(image: Image) -> Self {
        let image = ArcSwap::from_pointee(image);
        Self { image, waiting: Mutex::default(), ended: AtomicBool::new(false) }
    }

    pub(crate) fn image(&self) -> Arc<Image> {
        self.image.load_full()
    }

    pub(crate) fn publish(&self, image: Arc<Image>) {
        self.image.store(image);
        self.wake();
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        let waiting =
            std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
    }

    fn wait(&self, waker: &Waker) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.iter().any(|other| other.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }
}

/// Images as they come. One that is overtaken before it is asked for is skipped: only the newest
/// counts.
#[derive(Debug)]
pub struct Changes {
    current: Arc<Current>,
    seen: Revision,
}

impl Changes {
    pub(crate) fn new(current: Arc<Current>, seen: Revision) -> Self {
        Self { current, seen }
    }

    /// Waits for an image newer than the last one returned; `None` once there will be no more.
    ///
    /// Cancel safe: nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Arc<Image>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`Changes::next`], for whoever polls.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<Image>>> {
        // Registered before looking, so that an image published in between is not missed.
        self.current.wait(cx.waker());
        let ended = self.current.ended.load(Ordering::SeqCst);
        let image = self.current.image();
        if image.revision() > self.seen {
            self.seen = image.revision();
            return Poll::Ready(Some(image));
        }
        if ended { Poll::Ready(None) } else { Poll::Pending }
    }
}
