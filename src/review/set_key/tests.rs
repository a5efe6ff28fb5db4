use super::set_key;

const PATH: [&str; 5] = ["policy", "default", "tool", "db.drop", "hidden"];

fn hide(text: &str) -> Result<String, String> {
    set_key(text, &PATH, true, "by console")
}

#[test]
fn a_key_that_is_there_is_changed_wherever_it_is_written() {
    for text in [
        "[policy.default.tool.\"db.drop\"]\n  hidden   =  ?  # mine\nask = \"always\"\n",
        "[policy.default.tool.'db.drop']\r\nask = \"always\"\r\nhidden=?",
        "[policy.default.tool]\n'db.drop' = { ask = \"always\", hidden = ? }\n",
        "[policy.default.tool]\n\"db.drop\".hidden = ?\n",
        "policy.default.tool.\"db.drop\".hidden = ?\n[limits]\n",
        "[policy]\ndefault = { tool.\"db.drop\".hidden = ? }\n",
        "\u{feff}[policy.\"default\".tool.\"db\\u002edrop\"]\nhidden = ?\n",
    ] {
        let [hidden, shown] = ["true", "false"].map(|value| text.replace('?', value));
        assert_eq!(hide(&shown).unwrap(), hidden);
        assert_eq!(hide(&hidden).unwrap(), hidden, "nothing to change");
        assert_eq!(set_key(&hidden, &PATH, false, "").unwrap(), shown);
    }
}

#[test]
fn a_key_is_added_to_a_table_that_is_there() {
    // The added text is between the brackets `«»`.
    for text in [
        "[policy.default.tool.\"db.drop\"]  # mine\n«hidden = true\n»\task = \"always\"\n\n[limits]\n",
        "[policy.default.tool.\"db.drop\"]\r\n«hidden = true\r\n»ask = \"always\"\r\n",
        "[limits]\n[policy.default.tool.\"db.drop\"] # last«\nhidden = true\n»",
        "[policy.default.tool]\n\"db.drop\" = {« hidden = true,» ask = \"always\" }\n",
        "[policy.default.tool]\n\"db.drop\" = {« hidden = true, »ask = \"always\"}\n",
        "[policy.default.tool]\n\"db.drop\" = {« hidden = true »}\n",
        "[policy.default.tool]\n\"db.drop\" = {« hidden = true,» # TOML 1.1\n  ask = \"always\",\n}\n",
        "[policy.default.tool]\n«\"db.drop\".hidden = true\n»x.ask = \"never\"\n\"db.drop\".ask = \"always\"\n",
        "# first\n«policy.default.tool.\"db.drop\".hidden = true\n»policy.default.tool.\"db.drop\".ask = \"always\"\n",
        "policy = {« default.tool.\"db.drop\".hidden = true,» default.tool.\"db.drop\".ask = \"always\" }\n",
    ] {
        check(text);
    }
}

#[test]
fn a_table_is_added_where_there_is_none() {
    let table = "\n# by console\n[policy.default.tool.\"db.drop\"]\nhidden = true\n";
    for text in [
        "",
        "# mine\n",
        "[policy.default]\nmode = \"enforce\"   # stays\n\n[limits]\n",
        "policy.default.mode = \"enforce\"\n",
        "[policy.default]\ntool.other.ask = \"never\"\n",
        "[policy.default.tool.\"db.*\"]\nhidden = true\n",
        "[policy.default.tool.\"db.drop\".urls]\ndeny = [\"*\"]\n",
        "[policy.default.tool.db.drop]\n",
        "[[policy.default.suppress]]\nreason = \"\"\"\n[policy.default.tool.\"db.drop\"]\nhidden = false\n\"\"\"\n",
    ] {
        check(&format!("{text}«{table}»"));
    }
    check("[limits]«\n\n# by console\n[policy.default.tool.\"db.drop\"]\nhidden = true\n»");
    check(&format!("[limits]\r\n«{}»", table.replace('\n', "\r\n")));
    check("[policy]\ndefault = {« tool.\"db.drop\".hidden = true,» mode = \"enforce\" }\n");
    check(
        "[policy.default]\ntool = {« \"db.drop\".hidden = true,» other = { ask = \"never\" } }\n",
    );
}

#[test]
fn odd_names_are_written_so_that_nothing_in_them_is_obeyed() {
    for (tool, written) in [
        ("", "\"\""),
        ("read_all-2", "read_all-2"),
        ("a b/c", "\"a b/c\""),
        (
            "a\"]\nhidden = false\n[listen",
            "\"a\\\"]\\U0000000Ahidden = false\\U0000000A[listen\"",
        ),
        ("a\\b\u{202e}c\u{1b}", "\"a\\\\b\\U0000202Ec\\U0000001B\""),
        ("表", "\"表\""),
    ] {
        let path = ["policy", "default", "tool", tool, "hidden"];
        let after = set_key("", &path, true, "by console").unwrap();
        assert_eq!(
            after,
            format!("\n# by console\n[policy.default.tool.{written}]\nhidden = true\n")
        );
        assert_eq!(
            set_key(&after, &path, false, "").unwrap(),
            after.replace("hidden = true", "hidden = false")
        );
    }
}

#[test]
fn what_cannot_be_edited_in_place_is_refused() {
    for text in [
        "[policy.default.tool.\"db.drop\"]\nhidden = \"yes\"\n",
        "[policy.default.tool.\"db.drop\".hidden]\n",
        "[policy.default.tool]\n\"db.drop\" = true\n",
        "[[policy.default.tool]]\n",
        "policy = 1\n",
    ] {
        let why = hide(text).unwrap_err();
        assert_eq!(
            why,
            "`policy.default.tool.\"db.drop\".hidden` cannot be set in place; edit the file by hand",
            "{text}"
        );
    }
    assert!(hide("[policy\n").unwrap_err().len() > 5);
}

fn check(marked: &str) {
    let before = marked.split(['«', '»']).step_by(2).collect::<String>();
    let after = marked.replace(['«', '»'], "");
    assert_eq!(hide(&before).unwrap(), after);
    assert_eq!(
        set_key(&after, &PATH, true, "").unwrap(),
        after,
        "the second time there is nothing to change"
    );
}
