use lychgate::{
    config::PolicyConfig,
    inspect::{Policy, Verdict},
    message::{Direction, Message, ReadLimits},
    protocol::*,
    rules::Library,
};
use std::io::{BufRead, Write};
fn main() {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap();
    let only = args.next();
    let library =
        if only.is_some() { Library::load(false, &[std::path::PathBuf::from("rules")]) } else { Ok(Library::builtin()) };
    let library = library.unwrap_or_else(|f| {
        for f in f.iter().take(60) {
            eprintln!("{f}");
        }
        std::process::exit(2)
    });
    let mut config = PolicyConfig::default();
    if std::env::var("OPS").is_ok() {
        config.packs.insert("ops".into(), true);
    }
    let policy = Policy::new("x", &config, &library).unwrap();
    if only.as_deref() == Some("check") {
        println!("{} rules ok", library.rules().len());
        return;
    }
    let context = Context {
        agent: AgentName("a".into()),
        upstream: UpstreamName("u".into()),
        era: Era::Legacy,
        session: None,
        asked: [].into(),
    };
    let out = std::io::stdout();
    let mut out = std::io::BufWriter::new(out.lock());
    for line in std::io::BufReader::new(std::fs::File::open(file).unwrap()).lines() {
        let v: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let m = serde_json::json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":v["tool_name"],"arguments":v["arguments"]}});
        let start = std::time::Instant::now();
        let message = Message::parse(bytes::Bytes::from(m.to_string()), &ReadLimits::default());
        let (verdict, rules) = match &message {
            Ok(m) => {
                let i = policy.inspect(Direction::Outbound, m, &context, AuditId::make());
                (
                    if matches!(i.verdict, Verdict::Pass) { "allow" } else { "block" },
                    i.findings.iter().map(|f| f.rule.to_string()).collect::<Vec<_>>(),
                )
            }
            Err(e) => ("block", vec![e.to_string()]),
        };
        let us = start.elapsed().as_nanos() as f64 / 1000.0;
        writeln!(out, "{}", serde_json::json!({"id": v["id"], "verdict": verdict, "us": us, "rules": rules})).unwrap();
    }
}
