//! Finalize features: which of several behaviours the whole cluster has agreed on (KIP-584).

use super::{Command, Means, Plan, Refusal, RefusalKind};
use crate::image::Image;
use crate::record::{feature_key, put};
use crate::store::Op;

/// Change the levels of some features, all or none.
#[derive(Clone, Debug)]
pub struct UpdateFeatures {
    /// What to change.
    pub changes: Vec<FeatureChange>,
    /// Check only.
    pub validate_only: bool,
}

/// One feature's new level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureChange {
    /// The feature.
    pub name: String,
    /// Its new level; 0 unsets it.
    pub level: i16,
    /// Whether the level may fall.
    pub may_fall: bool,
    /// The levels this broker can do, if it knows the feature.
    pub supported: Option<(i16, i16)>,
}

impl Command for UpdateFeatures {
    /// The first refusal refuses all (KIP-584 as of version 2 of the request).
    type Reply = Result<(), Refusal>;

    fn decide(&mut self, image: &Image, _: &mut Means<'_>) -> Plan<Self::Reply> {
        let mut ops = Vec::new();
        for change in &self.changes {
            match decide_one(image, change) {
                Ok(op) => ops.extend(op),
                Err(refusal) => return Plan::answer(Err(refusal)),
            }
        }
        if self.validate_only { Plan::answer(Ok(())) } else { Plan::write(ops, Ok(())) }
    }
}

fn decide_one(image: &Image, change: &FeatureChange) -> Result<Option<Op>, Refusal> {
    let FeatureChange { name, level, .. } = change;
    let refuse = |why: &str| {
        let message = format!(
            "The update failed for all features since the following feature had an error: Invalid \
             update version {level} for feature {name}. {why}"
        );
        Err(Refusal::new(RefusalKind::InvalidUpdateVersion, message))
    };
    let node = image.node();
    let now = image.feature(name);
    let Some((min, max)) = change.supported else {
        return refuse(&format!("Local controller {node} does not support this feature."));
    };
    if *level != 0 && !(min..=max).contains(level) {
        return refuse(&format!("Local controller {node} only supports versions {min}-{max}"));
    }
    if *level < now.unwrap_or(0) && !change.may_fall {
        return refuse(
            "Can't downgrade the version of this feature without setting the upgrade type to \
             either safe or unsafe downgrade.",
        );
    }
    let key = feature_key(name);
    Ok(match (*level, now) {
        (0, None) => None,
        (0, Some(_)) => Some(Op::Delete { key }),
        (level, now) if Some(level) == now => None,
        (level, _) => Some(put(key, &level)),
    })
}
