//! Whose data a directory holds, in Kafka's `meta.properties`.
//!
//! A directory that came under another node's id would have all its logs set aside as strangers;
//! so the mistake is found before anything is touched.

use ottla_cluster::record::random_uuid;
use ottla_model::NodeId;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a data directory cannot be used by this broker.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// It was written under another identity.
    #[error(
        "{} says {key}={found}, this broker has {key}={ours}: use its own data directory, or set \
         node.id back",
        path.display()
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// `node.id` or `cluster.id`.
        key: &'static str,
        /// What it says.
        found: String,
        /// What this broker is.
        ours: String,
    },
    /// It cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

/// Checks that `dir` is this broker's, and makes it so if it is nobody's.
///
/// # Errors
/// It is another's, or the file system refuses.
pub(crate) fn check(dir: &Path, cluster: &str, node: NodeId) -> Result<(), IdentityError> {
    let path = dir.join(FILE);
    let failed = |error| IdentityError::Io { path: path.clone(), error };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return write(dir, &path, cluster, node).map_err(failed);
        }
        Err(error) => return Err(failed(error)),
    };
    for (key, ours) in [("node.id", node.to_string()), ("cluster.id", cluster.to_owned())] {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        match line.map(str::trim) {
            Some(found) if found != ours => {
                let found = found.to_owned();
                return Err(IdentityError::Other { path, key, found, ours });
            }
            _ => {}
        }
    }
    Ok(())
}

fn write(dir: &Path, path: &Path, cluster: &str, node: NodeId) -> io::Result<()> {
    let directory = ottla_model::TopicId(random_uuid(&mut crate::entropy::bits));
    let temporary = dir.join(format!("{FILE}.tmp"));
    let mut file = File::create(&temporary)?;
    write!(file, "version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={directory}\n")?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(dir)?.sync_all()
}

const FILE: &str = "meta.properties";
