//! Loads any text as a rule file: it is either loaded or refused with faults that have a message,
//! without a panic.

use std::path::PathBuf;
use std::sync::LazyLock;

use lychgate::config::PolicyConfig;
use lychgate::message::Direction;
use lychgate::rules::Library;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder").keep();
    std::fs::create_dir(folder.join("outbound")).expect("a folder");
    folder
});

pub fn fuzz(input: &str) {
    std::fs::write(FOLDER.join("outbound/fuzzed.toml"), input).expect("a file is written");
    match Library::load(false, std::slice::from_ref(&FOLDER)) {
        Ok(library) => {
            let policy = PolicyConfig {
                builtin: false,
                rules: vec![FOLDER.clone()],
                ..PolicyConfig::default()
            };
            library
                .rule_set(Direction::Outbound, &policy)
                .expect("a library that loads compiles");
        }
        Err(faults) => {
            assert!(faults.iter().all(|fault| !fault.to_string().is_empty()) && !faults.is_empty())
        }
    }
}
