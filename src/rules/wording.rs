//! The rules that ask a model of wording, and which weights a policy wants for it.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::config::{ModelConfig, PolicyConfig};
use crate::detect::model::{FILE_BYTES, Model};
use crate::detect::signal::{Spec, Wording};
use crate::document::Fault;

use super::{Find, Rule};

/// The weights that a policy wants in the place of the built-in ones.
pub(super) fn model(policy: &PolicyConfig) -> Result<Option<Arc<Model>>, Fault> {
    let ModelConfig::File(path) = &policy.model else { return Ok(None) };
    let hint = "train it with `tests/bench/detection/model/train.py`, or write `model = \"builtin\"`";
    let fault = |message: String| Fault::of_file(path.display().to_string(), message, Some(hint));
    let bytes = read(path).map_err(|error| fault(error.to_string()))?;
    Model::read(&bytes).map(|model| Some(Arc::new(model))).map_err(fault)
}

/// What a rule asks of a model, if it asks one.
pub(super) fn of(rule: &Rule) -> Option<&Wording> {
    match rule.find.as_ref() {
        Find::Signal(Spec::Wording(wording)) => Some(wording),
        _ => None,
    }
}

/// The rule with other weights, if it asks a model.
pub(super) fn with(rule: &Rule, model: &Arc<Model>) -> Option<Arc<Rule>> {
    let wording = Wording { model: model.clone(), ..of(rule)?.clone() };
    Some(Arc::new(Rule { find: Arc::new(Find::Signal(Spec::Wording(wording))), ..rule.clone() }))
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Direction;
    use crate::rules::Library;

    fn inbound(policy: &PolicyConfig) -> Result<crate::rules::RuleSet, Vec<Fault>> {
        Library::builtin().set(Direction::Inbound, policy)
    }

    fn version(set: &crate::rules::RuleSet) -> Option<String> {
        set.rules().iter().find_map(|rule| rule.wording()).map(|model| model.version().to_owned())
    }

    #[test]
    fn a_policy_has_the_built_in_weights_none_or_its_own() {
        let usual = inbound(&PolicyConfig { model: ModelConfig::Builtin, ..PolicyConfig::default() }).unwrap();
        assert!(version(&usual).is_some());
        let off = inbound(&PolicyConfig::default()).unwrap();
        assert_eq!((version(&off), off.rules().len()), (None, usual.rules().len() - 1));

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.bin");
        let mut weights = include_bytes!("../detect/model/weights.bin").to_vec();
        std::fs::write(&path, &weights).unwrap();
        let own = PolicyConfig { model: ModelConfig::File(path.clone()), ..PolicyConfig::default() };
        assert_eq!(version(&inbound(&own).unwrap()), version(&usual));

        weights[100] ^= 1;
        std::fs::write(&path, &weights).unwrap();
        let faults = inbound(&own).unwrap_err();
        assert!(faults[0].to_string().contains("damaged") && faults[0].file.ends_with("weights.bin"), "{faults:?}");
        std::fs::remove_file(&path).unwrap();
        assert!(inbound(&own).is_err());
    }

    #[test]
    fn a_strict_policy_leaves_out_what_is_only_likely() {
        let mut strict = PolicyConfig::default();
        strict.packs.insert("likely".into(), false);
        let ids = |policy: &PolicyConfig| -> Vec<String> {
            inbound(policy).unwrap().rules().iter().map(|rule| rule.id.to_string()).collect()
        };
        let (usual, strict) = (ids(&PolicyConfig::default()), ids(&strict));
        assert!(usual.contains(&"steering-text".to_owned()) && !strict.contains(&"steering-text".to_owned()));
        assert!(strict.contains(&"steering-text-clear".to_owned()) && strict.contains(&"override-instructions".to_owned()));
    }
}
