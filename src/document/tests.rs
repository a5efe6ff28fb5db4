use super::suggest::distance;
use super::*;

#[test]
fn all_faults_are_told_at_once_with_their_places() {
    let text = "mode = \"enforse\"\nsize = 99\n\n[deep]\nlist = [\"a\", 1]\nextra = true\n";
    let faults = read("x.toml", text, |root| {
        root.choice("mode", &[("enforce", 1), ("observe", 2)]);
        root.integer("size", 1..=10);
        let deep = root.table("deep")?;
        deep.strings("list");
        deep.strings("extras");
        deep.finish();
        root.finish();
        Some(())
    })
    .unwrap_err();
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "x.toml:1:8: `enforse` is not a valid `mode`\n  hint: did you mean `enforce`?",
            "x.toml:2:8: `size` must be between 1 and 10",
            "x.toml:5:14: `list` must be a list of strings, not a whole number",
            "x.toml:6:1: unknown key `extra`\n  hint: did you mean `extras`?",
        ]
    );
}

#[test]
fn a_syntax_fault_has_its_place() {
    let faults = read("x.toml", "a = 1\nb = [\n", |_| Some(())).unwrap_err();
    assert_eq!((faults.len(), faults[0].line), (1, 2), "{faults:?}");
}

#[test]
fn distances() {
    for (a, b, count) in [
        ("abc", "abc", 0),
        ("abc", "abd", 1),
        ("", "ab", 2),
        ("kitten", "sitting", 3),
    ] {
        assert_eq!(distance(a, b), count, "{a} {b}");
    }
}
