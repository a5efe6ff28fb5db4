//! The name of a key in the file and the field of the loaded config that it sets, for keys whose
//! test sets the field in Rust. Both together show the effect of the key.

use std::collections::BTreeMap;

use lychgate::config::{self, ClassifierConfig, Config, HttpTransport, LoginConfig, Transport};
use serde::Deserialize;

use super::prepare;

#[derive(Deserialize)]
struct Rows {
    group: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    /// The lines before the one that sets the key.
    within: String,
    /// For each key, the lines that set it to a value other than the default, and the field with
    /// the key set; without the key it is different.
    fields: BTreeMap<String, (String, String)>,
}

fn groups() -> Vec<Group> {
    let rows: Rows = toml::from_str(include_str!("fields.toml")).unwrap();
    rows.group
}

/// Returns the keys of all cases.
pub(super) fn keys() -> impl Iterator<Item = String> {
    groups()
        .into_iter()
        .flat_map(|group| group.fields.into_keys())
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

fn login(config: &Config) -> Option<&LoginConfig> {
    http(config).login.as_deref()
}

fn classifier(config: &Config) -> Option<&ClassifierConfig> {
    config.policies["default"].classifier.as_deref()
}

/// Returns the field that a key sets.
fn field(key: &str, c: &Config) -> String {
    match key {
        "admin.console_url" => show(&c.admin.console_url),
        "agent.certificate" => show(&c.agents.first().map(|it| &it.certificate)),
        "agents.file" => show(&c.agents_file.file),
        "approval.deadline_seconds" => show(&c.approval.deadline),
        "approval.file" => show(&c.approval.file),
        "approval.notify_command" => show(&c.notify.command),
        "approval.notify_seconds" => show(&c.notify.timeout),
        "approval.session_seconds" => show(&c.approval.session),
        "approval.token_file" => show(&c.approval.token_file),
        "approval.wait_seconds" => show(&c.approval.wait),
        "approval.webhook.bearer" => show(&c.notify.webhook.as_ref().map(|it| &it.bearer)),
        "approval.webhook.url" => show(&c.notify.webhook.as_ref().map(|it| &it.url)),
        "audit.anchor_command" => show(&c.audit.anchor.command),
        "audit.anchor_seconds" => show(&c.audit.anchor.timeout),
        "audit.anchor_url" => show(&c.audit.anchor.url),
        "audit.compress" => show(&c.audit.rotation.compress),
        "audit.keep_bytes" => show(&c.audit.rotation.keep_bytes),
        "audit.keep_days" => show(&c.audit.rotation.keep_age),
        "audit.keep_files" => show(&c.audit.rotation.keep_files),
        "audit.required" => show(&c.audit.required),
        "audit.rotate_bytes" => show(&c.audit.rotation.bytes),
        "audit.rotate_hours" => show(&c.audit.rotation.age),
        "evidence.max_age_days" => show(&c.evidence.age),
        "evidence.max_bytes" => show(&c.evidence.bytes),
        "issuer.ca" => show(&c.issuers[0].ca),
        "issuer.keys_keep_seconds" => show(&c.issuers[0].keys_keep),
        "limits.admin_connections" => show(&c.limits.admin_connections),
        "limits.bytes_in_flight" => show(&c.limits.bytes_in_flight),
        "limits.bytes_in_flight_per_agent" => show(&c.limits.bytes_in_flight_per_agent),
        "limits.calls_per_agent" => show(&c.limits.calls_per_agent),
        "limits.calls_per_upstream" => show(&c.limits.calls_per_upstream),
        "limits.children_per_upstream" => show(&c.limits.children_per_upstream),
        "limits.connections" => show(&c.limits.connections),
        "limits.connections_per_address" => show(&c.limits.connections_per_address),
        "limits.drain_seconds" => show(&c.limits.drain),
        "limits.flow_age_seconds" => show(&c.limits.flow.age),
        "limits.flow_message_bytes" => show(&c.limits.flow.message_bytes),
        "limits.flow_pieces" => show(&c.limits.flow.pieces),
        "limits.flow_quarantined_pieces" => show(&c.limits.flow.quarantined),
        "limits.judged_bytes_per_message" => show(&c.limits.work.judged_bytes),
        "limits.judging_milliseconds" => show(&c.limits.judging),
        "limits.keep_alive_seconds" => show(&c.limits.keep_alive),
        "limits.kept_result_seconds" => show(&c.limits.stored_results.age),
        "limits.pending_approval_bytes" => show(&c.limits.pending_approval_bytes),
        "limits.pending_approvals" => show(&c.limits.pending_approvals),
        "limits.pinned_definition_bytes" => show(&c.limits.pinned_definition_bytes),
        "limits.pinned_definitions" => show(&c.limits.pinned_definitions),
        "limits.queued_messages" => show(&c.limits.queued_messages),
        "limits.request_read_seconds" => show(&c.limits.request_read),
        "limits.session_idle_seconds" => show(&c.limits.session_idle),
        "limits.sessions" => show(&c.limits.sessions),
        "limits.stream_idle_seconds" => show(&c.limits.stream_idle),
        "limits.unauthenticated_connections" => show(&c.limits.unauthenticated_connections),
        "limits.unpacked_bytes_per_message" => show(&c.limits.work.unpacked_bytes),
        "limits.clean_texts" => show(&c.limits.clean_texts),
        "limits.verified_tokens" => show(&c.limits.verified_tokens),
        "limits.wrong_tokens_per_minute" => show(&c.limits.wrong_tokens_per_minute),
        "listen.tls.cert" => show(&c.listen.tls.as_ref().map(|it| &it.cert)),
        "listen.tls.key" => show(&c.listen.tls.as_ref().map(|it| &it.key)),
        "listen.tls.client_ca" => show(&c.listen.tls.as_ref().map(|it| &it.client_ca)),
        "oauth.allow_loopback_http" => show(&c.oauth.allow_loopback_http),
        "oauth.callback_port" => show(&c.oauth.callback_port),
        "oauth.earlier_vault_keys" => show(&c.oauth.earlier_vault_keys),
        "oauth.lease_seconds" => show(&c.oauth.lease),
        "oauth.login_seconds" => show(&c.oauth.login),
        "oauth.open_browser" => show(&c.oauth.open_browser),
        "oauth.private_hosts" => show(&c.oauth.private_hosts),
        "oauth.request_seconds" => show(&c.oauth.request),
        "otlp.batch_bytes" => show(&c.otlp.as_ref().map(|it| &it.batch_bytes)),
        "otlp.ca" => show(&c.otlp.as_ref().map(|it| &it.ca)),
        "otlp.queue_bytes" => show(&c.otlp.as_ref().map(|it| &it.queue_bytes)),
        "otlp.queue_records" => show(&c.otlp.as_ref().map(|it| &it.queue_records)),
        "otlp.timeout_ms" => show(&c.otlp.as_ref().map(|it| &it.timeout)),
        "pins.file" => show(&c.pins.file),
        "pins.persistent" => show(&c.pins.persistent),
        "policy.*.approval.scopes" => show(&c.policies["default"].scopes),
        "policy.*.approval.through_agent" => show(&c.policies["default"].through_agent),
        "policy.*.classifier.action" => show(&classifier(c).map(|it| &it.action)),
        "policy.*.classifier.ask_about" => show(&classifier(c).map(|it| &it.ask_about)),
        "policy.*.classifier.calls_at_once" => show(&classifier(c).map(|it| &it.calls_at_once)),
        "policy.*.classifier.least_bytes" => show(&classifier(c).map(|it| &it.least_bytes)),
        "policy.*.classifier.on_failure" => show(&classifier(c).map(|it| &it.passes_on_failure)),
        "policy.*.classifier.text_bytes" => show(&classifier(c).map(|it| &it.text_bytes)),
        "policy.*.classifier.timeout_ms" => show(&classifier(c).map(|it| &it.timeout)),
        "policy.*.tool.*.concurrent_calls" => {
            show(&c.policies["default"].tools[0].1.limits.concurrent)
        }
        "policy.*.urls.resolve_ms" => show(&c.policies["default"].places.resolve),
        "quarantine.max_age_days" => show(&c.quarantine.age),
        "quarantine.max_bytes" => show(&c.quarantine.bytes),
        "quarantine.max_items" => show(&c.quarantine.items),
        "quarantine.release_seconds" => show(&c.quarantine.release),
        "upstream.*.http.ca" => show(&http(c).ca),
        "upstream.*.http.client_cert.cert" => {
            show(&http(c).client_cert.as_ref().map(|(cert, _)| cert))
        }
        "upstream.*.http.client_cert.key" => {
            show(&http(c).client_cert.as_ref().map(|(_, key)| key))
        }
        "upstream.*.http.oauth.client_auth" => {
            show(&login(c).and_then(|it| it.client_auth.as_ref()))
        }
        "upstream.*.http.oauth.client_key" => {
            show(&login(c).and_then(|it| it.client_key.as_ref().map(|key| &key.0)))
        }
        "upstream.*.http.oauth.client_key_id" => {
            show(&login(c).and_then(|it| it.client_key_id.as_ref()))
        }
        "upstream.*.http.oauth.resource" => show(&login(c).and_then(|it| it.resource.as_ref())),
        "upstream.*.http.oauth.scopes" => show(&login(c).and_then(|it| it.scopes.as_ref())),
        "upstream.*.initialize_timeout_seconds" => show(&c.upstreams["up"].initialize_timeout),
        "upstream.*.request_timeout_seconds" => show(&c.upstreams["up"].request_timeout),
        _ => panic!("no field is named for `{key}`"),
    }
}

/// The content of the files `a.pem`, `b.pem` and `c.pem` beside the config.
const PEM: &str = "no certificate";

/// Loads a config file and returns the field that a key sets.
fn read(key: &str, text: &str) -> Result<String, String> {
    let (setup, text) = prepare(text, "http://127.0.0.1:1/mcp");
    for name in ["a.pem", "b.pem", "c.pem"] {
        std::fs::write(setup.folder.path().join(name), PEM).unwrap();
    }
    let file = setup.folder.path().join("lychgate.toml");
    std::fs::write(&file, &text).unwrap();
    let config = config::load(&file).map_err(|faults| format!("{faults:?}"))?;
    let folder = setup.folder.path().display().to_string();
    Ok(field(key, &config).replace(&folder, "{folder}"))
}

#[test]
fn each_key_sets_its_field() {
    let mut wrong = Vec::new();
    for Group { within, fields } in groups() {
        for (key, (set, loaded)) in fields {
            let name = key.rsplit('.').next().unwrap();
            assert!(set.contains(name), "{key} is not in its own case");
            match (
                read(&key, &format!("{within}\n{set}\n")),
                read(&key, &within),
            ) {
                (Ok(set), Ok(unset)) if set == loaded && unset != loaded => {}
                (set, unset) => wrong.push(format!(
                    "{key}: {set:?} with it, {unset:?} without it; expected {loaded}"
                )),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "keys that do not set their field: {wrong:#?}"
    );
}
