//! A session of two consumers, byte by byte, as `docs/register-protocol.md` prints it: what two
//! connections carry, with ids and port made the same in every run.

use crate::member::Member;
use crate::wire::Wire;
use crate::{Stage, eventually, page};
use ottla_wire::generated::*;
use ottla_wire::{ApiKey, Message, Reader, header};
use std::collections::HashMap;
use std::fmt::Write;

/// What was said so far, and what each connection still waits for.
struct Story {
    text: String,
    /// Real bytes and those that stand for them, of equal length.
    masks: Vec<(Vec<u8>, Vec<u8>)>,
    asked: HashMap<&'static str, Vec<ApiKey>>,
}

#[test]
fn s29_to_s34_the_page_prints_a_real_session() {
    let stage = Stage::new();
    let port = i32::from(stage.broker.address().port()).to_be_bytes().to_vec();
    let masks = vec![(port, 9092_i32.to_be_bytes().to_vec())];
    let mut story = Story { text: String::new(), masks, asked: HashMap::new() };
    let (mut on_a, mut on_b) = (named(&stage, "a"), named(&stage, "b"));
    let mut a = Member::patient("g", &["t"]);
    let mut b = Member::new("g", &["t"]);

    story.says("a finds the coordinator of g, a group nobody knows yet: generation 0.");
    on_a.metadata("g");
    story.hears(&mut on_a);
    // No other message has the port, but a number in one may be equal to it.
    story.masks.clear();
    story.says("a registers as a new consumer and owns everything.");
    assert_eq!(a.register(&mut on_a), 0);
    story.masks(&a, "a-00000000-0000-0000-0000-00000000000a");
    story.hears(&mut on_a);
    story.says("a beats.");
    a.beat(&mut on_a);
    story.hears(&mut on_a);
    story.says("b registers, with the timeouts of the example; its response waits for a.");
    b.send_registration(&mut on_b);
    story.hears(&mut on_b);
    story.says("a's next heartbeat is told that a rebalance is pending (27).");
    beat_until(&a, &mut on_a, 27);
    story.hears(&mut on_a);
    story.says("a registers again, with its id. Both are answered: generation 2.");
    assert_eq!(a.register(&mut on_a), 0);
    assert_eq!(b.take_registration(&mut on_b), 0);
    story.masks(&b, "b-00000000-0000-0000-0000-00000000000b");
    story.hears(&mut on_a);
    story.hears(&mut on_b);
    assert!(on_b.is_broken());
    story.says("b is silent for 3 x 1000/3 ms: it is dead, and its connection is closed.");
    story.says("a learns of the rebalance, registers, and owns everything again: generation 3.");
    beat_until(&a, &mut on_a, 27);
    assert_eq!(a.register(&mut on_a), 0);
    story.hears(&mut on_a);
    story.says("b comes back on a new connection, too late: its id is unknown (25).");
    let mut on_b = named(&stage, "b");
    assert_eq!(b.beat(&mut on_b).error, 25);
    story.hears(&mut on_b);
    page::check_block("session", &story.text);
}

fn named(stage: &Stage, client: &'static str) -> Wire {
    let mut wire = stage.wire();
    (wire.client, wire.recorded) = (client, Some(Vec::new()));
    wire
}

/// Beats until the answer is this; only the last time is on record.
fn beat_until(member: &Member, wire: &mut Wire, error: i16) {
    let began = wire.correlation_id;
    eventually("the answer", || {
        wire.correlation_id = began;
        let before = wire.recorded.as_ref().map_or(0, Vec::len);
        let is_it = member.beat(wire).error == error;
        if !is_it && let Some(recorded) = &mut wire.recorded {
            recorded.truncate(before);
        }
        is_it
    });
}

impl Story {
    fn says(&mut self, what: &str) {
        writeln!(self.text, "\n# {what}").expect("memory");
    }

    /// From now on the member's id is another in what is told.
    fn masks(&mut self, member: &Member, id: &str) {
        assert_eq!(member.id.len(), id.len());
        self.masks.push((member.id.clone().into_bytes(), id.as_bytes().to_vec()));
    }

    /// Tells what went over a connection since the last time.
    fn hears(&mut self, wire: &mut Wire) {
        for (sent, frame) in wire.recorded.replace(Vec::new()).expect("it records") {
            self.tell(wire.client, sent, self.masked(frame));
        }
    }

    fn masked(&self, mut frame: Vec<u8>) -> Vec<u8> {
        for (real, stands_for) in &self.masks {
            let at = frame.windows(real.len()).position(|window| window == real);
            if let Some(at) = at {
                frame[at..at + real.len()].copy_from_slice(stands_for);
            }
        }
        frame
    }

    fn tell(&mut self, client: &'static str, sent: bool, frame: Vec<u8>) {
        let mut reader = Reader::new(&frame[4..]);
        let asked = self.asked.entry(client).or_default();
        let message = if sent {
            let header = header::RequestHeader::decode(&mut reader).expect("a header");
            asked.push(header.key);
            request(header.key, &frame[4 + reader.offset()..])
        } else {
            let key = asked.remove(0);
            header::decode_response(&mut reader, key, 0).expect("a header");
            response(key, &frame[4 + reader.offset()..])
        };
        let arrow = if sent { "->" } else { "<-" };
        writeln!(self.text, "{client} {arrow} {message}").expect("memory");
        for line in frame.chunks(32) {
            let words = line
                .chunks(4)
                .map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
            let words: Vec<_> = words.collect();
            writeln!(self.text, "     {}", words.join(" ")).expect("memory");
        }
    }
}

fn request(key: ApiKey, body: &[u8]) -> String {
    match key {
        ApiKey::ConsumerMetadata => shown::<ConsumerMetadataRequest<'_>>(body),
        ApiKey::RegisterConsumer => shown::<RegisterConsumerRequest<'_>>(body),
        ApiKey::RegisterHeartbeat => shown::<RegisterHeartbeatRequest<'_>>(body),
        key => panic!("{key} is not part of the session"),
    }
}

fn response(key: ApiKey, body: &[u8]) -> String {
    match key {
        ApiKey::ConsumerMetadata => shown::<ConsumerMetadataResponse<'_>>(body),
        ApiKey::RegisterConsumer => shown::<RegisterConsumerResponse<'_>>(body),
        ApiKey::RegisterHeartbeat => shown::<RegisterHeartbeatResponse<'_>>(body),
        key => panic!("{key} is not part of the session"),
    }
}

/// The message's name and its fields, one beside the other.
fn shown<'a, M: Message<'a> + std::fmt::Debug>(body: &'a [u8]) -> String {
    format!("{:?}", M::decode_all(body, 0).expect("a well-formed message"))
}
