//! A snapshot of the help of every command, as users read it.

use super::*;

fn snapshot() -> String {
    let mut root = command();
    let mut text = format!("$ lychgate help\n{}\n", root.render_help());
    let mut built = command();
    built.build();
    let mut path = Vec::new();
    append(&mut built, &mut path, &mut text);
    // The version is the only text that depends on the build.
    text.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

fn append(command: &mut Command, path: &mut Vec<String>, text: &mut String) {
    for verb in command
        .get_subcommands_mut()
        .filter(|verb| verb.get_name() != "help")
    {
        path.push(verb.get_name().to_owned());
        let _infallible = write!(
            text,
            "\n$ lychgate {} --help\n{}\n",
            path.join(" "),
            verb.render_long_help()
        );
        append(verb, path, text);
        path.pop();
    }
}

#[test]
fn the_help_is_that_of_the_snapshot() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/help.txt");
    let help = snapshot();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, &help).unwrap();
    }
    let golden = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        help == golden,
        "{file} is out of date: UPDATE=1 cargo test --lib cli::help_tests\n{help}"
    );
}

#[test]
fn the_list_of_verbs_names_each_once_and_fits_80_columns() {
    let mut built = command();
    built.build();
    let verbs: Vec<&str> = built.get_subcommands().map(Command::get_name).collect();
    let mut listed: Vec<&str> = GROUPS
        .iter()
        .flat_map(|(_, verbs)| verbs.iter().copied())
        .collect();
    for verb in &verbs {
        assert_eq!(
            listed.iter().filter(|listed| *listed == verb).count(),
            1,
            "{verb}"
        );
    }
    listed.retain(|listed| !verbs.contains(listed));
    assert!(listed.is_empty(), "{listed:?}");
    let help = command().render_help().to_string();
    let wide: Vec<&str> = help
        .lines()
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert!(wide.is_empty(), "{wide:?}");
}

#[test]
fn examples_and_exit_codes_fit_the_terminal() {
    let mut built = command();
    built.build();
    for verb in built.get_subcommands_mut() {
        let after = verb
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let wide: Vec<&str> = after
            .lines()
            .filter(|line| line.chars().count() > 96)
            .collect();
        assert!(wide.is_empty(), "{}: {wide:?}", verb.get_name());
    }
}
