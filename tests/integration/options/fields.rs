//! The name of a key in the file and the field of the loaded config that it sets, for keys whose
//! test sets the field in Rust. Both together show the effect of the key.

use lychgate::config::{self, Config, HttpTransport, Transport};

use super::prepare;

mod gate;
mod traffic;

pub(super) struct Field {
    pub(super) key: &'static str,
    /// The lines before the one that sets the key.
    within: &'static str,
    /// Sets the key to a value other than the default.
    set: &'static str,
    field: fn(&Config) -> String,
    /// The field with the key set; without the key it is different.
    loaded: &'static str,
}

const fn row(
    key: &'static str,
    within: &'static str,
    set: &'static str,
    field: fn(&Config) -> String,
    loaded: &'static str,
) -> Field {
    Field {
        key,
        within,
        set,
        field,
        loaded,
    }
}

fn show(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

/// Returns the HTTP settings of the only upstream.
fn http(config: &Config) -> &HttpTransport {
    match &config.upstreams["up"].transport {
        Transport::Http(http) | Transport::Sse(http) => http,
        Transport::Stdio(_) => panic!("the upstream is a child process"),
    }
}

/// The content of the files `a.pem`, `b.pem` and `c.pem` beside the config.
const PEM: &str = "no certificate";

/// Returns the cases of all files.
pub(super) fn all() -> impl Iterator<Item = &'static Field> {
    gate::FIELDS.iter().chain(traffic::FIELDS)
}

#[test]
fn each_key_sets_its_field() {
    let mut wrong = Vec::new();
    for Field {
        key,
        within,
        set,
        field,
        loaded,
    } in all()
    {
        let read = |text: &str| {
            let (setup, text) = prepare(text, "http://127.0.0.1:1/mcp");
            for name in ["a.pem", "b.pem", "c.pem"] {
                std::fs::write(setup.folder.path().join(name), PEM).unwrap();
            }
            let file = setup.folder.path().join("lychgate.toml");
            std::fs::write(&file, &text).unwrap();
            let read = config::load(&file)
                .map(|config| field(&config))
                .map_err(|faults| format!("{faults:?}"));
            read.map(|field| field.replace(&setup.folder.path().display().to_string(), "{folder}"))
        };
        let name = key.rsplit('.').next().unwrap();
        assert!(set.contains(name), "{key} is not in its own case");
        let set = read(&format!("{within}\n{set}\n"));
        let unset = read(within);
        match (set, unset) {
            (Ok(set), Ok(unset)) if set == *loaded && unset != *loaded => {}
            (set, unset) => wrong.push(format!(
                "{key}: {set:?} with it, {unset:?} without it; expected {loaded}"
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "keys that do not set their field: {wrong:#?}"
    );
}
