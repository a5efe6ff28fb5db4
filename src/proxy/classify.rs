//! Calls an external classifier about a server's messages, between two inspections: one request for
//! each message, limited in time, bytes and concurrency. `deploy/guide/classifier.md` describes the
//! protocol.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::config::ClassifierConfig;
use crate::inspect::{Classified, ClassifierFailure, Inspection, Policy, Unclassified};
use crate::message::{Json, ReadLimits, quote};
use crate::upstream::{Service, ServiceError};

/// Maximum length of an answer.
const ANSWER_BYTES: usize = 64 << 10;
/// Maximum length of the name and of the version of a classifier, in characters.
const NAME_CHARS: usize = 64;

/// The classifiers in use: one for each active policy that configures one.
#[derive(Default)]
pub(super) struct Classifiers(Mutex<Vec<CachedClassifier>>);

/// A classifier, and the policy's config of it: a reload creates another config, and another
/// classifier.
type CachedClassifier = (Weak<ClassifierConfig>, Result<Arc<Service>, ()>);

impl Classifiers {
    /// Returns the classifier's result for a judged message; `None` if the policy does not require
    /// one.
    pub(super) async fn classify(
        &self,
        policy: &Policy,
        inspection: &mut Inspection,
    ) -> Option<Classified> {
        let (config, unclassified) = policy.take_unclassified(inspection)?;
        // Boxed: calls without a classifier reserve no space for it.
        Some(Box::pin(self.request_scores(config.clone(), unclassified)).await)
    }

    async fn request_scores(
        &self,
        config: Arc<ClassifierConfig>,
        unclassified: Unclassified,
    ) -> Classified {
        let started = Instant::now();
        let answer = match self.service(&config) {
            _ if unclassified.too_many => Err(ClassifierFailure::TooLarge),
            Err(()) => Err(ClassifierFailure::Unreachable),
            Ok(service) => {
                let answer = service
                    .ask(build_request(&unclassified), config.timeout)
                    .await;
                answer.map_err(failure).and_then(|answer| {
                    parse_answer(answer, unclassified).ok_or(ClassifierFailure::BadAnswer)
                })
            }
        };
        let duration = started.elapsed();
        match answer {
            Ok(ClassifierReply {
                name,
                version,
                scores,
            }) => Classified {
                name,
                version,
                scores: Ok(scores),
                duration,
            },
            Err(error) => Classified {
                name: String::new(),
                version: None,
                scores: Err(error),
                duration,
            },
        }
    }

    fn service(&self, config: &Arc<ClassifierConfig>) -> Result<Arc<Service>, ()> {
        let mut cached = self.0.lock();
        cached.retain(|(of, _)| of.strong_count() > 0);
        if let Some((_, service)) = cached
            .iter()
            .find(|(of, _)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(config)))
        {
            return service.clone();
        }
        let result = Service::new(&config.server, config.calls_at_once, ANSWER_BYTES).map(Arc::new);
        let service =
            result.map_err(|error| tracing::error!(%error, "cannot reach the external classifier"));
        cached.push((Arc::downgrade(config), service.clone()));
        service
    }
}

/// The answer of a classifier.
struct ClassifierReply {
    name: String,
    version: Option<String>,
    scores: HashMap<String, f64>,
}

fn build_request(unclassified: &Unclassified) -> Bytes {
    let mut body = String::from(r#"{"format":1,"texts":["#);
    for (n, text) in unclassified.texts.iter().enumerate() {
        let comma = if n > 0 { "," } else { "" };
        let tool = text
            .tool
            .as_ref()
            .map(|tool| format!(r#""tool":{},"#, quote(tool)))
            .unwrap_or_default();
        let surface = text.surface.name();
        let at = quote(&text.at);
        body += &format!(
            r#"{comma}{{"surface":"{surface}",{tool}"at":{at},"text":{}}}"#,
            quote(&text.text)
        );
    }
    (body + "]}").into()
}

/// Parses an answer into the scores of the texts, one for each and in their order; `None` if the
/// answer has any other form.
fn parse_answer(answer: Bytes, unclassified: Unclassified) -> Option<ClassifierReply> {
    let json = Json::parse(answer, &ReadLimits::of_bytes(ANSWER_BYTES)).ok()?;
    let root = json.root();
    let label = |key: &str| {
        root.get_str(key)
            .filter(|label| is_label(label))
            .map(|label| label.into_owned())
    };
    let name = label("name")?;
    let version = label("version");
    if version.is_none() && root.get("version").is_some() {
        return None;
    }
    let scores: Vec<f64> = root
        .get("scores")?
        .elements()
        .map(|score| score.raw().parse().ok())
        .collect::<Option<_>>()?;
    if scores.len() != unclassified.texts.len()
        || !scores.iter().all(|score| (0.0..=1.0).contains(score))
    {
        return None;
    }
    let scores = unclassified
        .texts
        .into_iter()
        .map(|text| text.text)
        .zip(scores)
        .collect();
    Some(ClassifierReply {
        name,
        version,
        scores,
    })
}

fn is_label(text: &str) -> bool {
    (1..=NAME_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn failure(error: ServiceError) -> ClassifierFailure {
    match error {
        ServiceError::TimedOut => ClassifierFailure::Timeout,
        ServiceError::Busy => ClassifierFailure::Busy,
        ServiceError::Unreachable => ClassifierFailure::Unreachable,
        ServiceError::Unusable => ClassifierFailure::BadAnswer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Surface;
    use crate::inspect::UnscoredText;

    fn open(texts: &[&str]) -> Unclassified {
        let text = |text: &&str| UnscoredText {
            text: (*text).to_owned(),
            surface: Surface::Content,
            tool: Some("fe\"tch".to_owned()),
            at: "/result/content/0/text".to_owned(),
        };
        let mut open = Unclassified::default();
        open.texts = texts.iter().map(text).collect();
        open
    }

    #[test]
    fn what_is_asked_reads_back() {
        let body = build_request(&open(&["one \"two\"\n", "three"]));
        let read: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(read["format"], 1);
        assert_eq!(read["texts"][0]["text"], "one \"two\"\n");
        assert_eq!(
            (&read["texts"][1]["tool"], &read["texts"][1]["surface"]),
            (&"fe\"tch".into(), &"content".into())
        );
    }

    #[test]
    fn only_whole_answers_count() {
        let said = |answer: &'static str| parse_answer(answer.into(), open(&["a", "b"]));
        let reply = said(
            r#" {"name":"guard","version":"2.1","scores":[0, 0.75],"model":{"any":"thing"}} "#,
        )
        .unwrap();
        assert_eq!(
            (&*reply.name, reply.version.as_deref(), reply.scores["b"]),
            ("guard", Some("2.1"), 0.75)
        );
        assert!(
            said(r#"{"name":"guard","scores":[1,0]}"#).is_some_and(|said| said.version.is_none())
        );
        for invalid in [
            "",
            "[0,1]",
            r#"{"scores":[0,1]}"#,
            r#"{"name":"guard","scores":[0]}"#,
            r#"{"name":"guard","scores":[0,1,0]}"#,
            r#"{"name":"guard","scores":[0,1.01]}"#,
            r#"{"name":"guard","scores":[0,-0.5]}"#,
            r#"{"name":"guard","scores":[0,1e999]}"#,
            r#"{"name":"guard","scores":[0,"1"]}"#,
            r#"{"name":"guard","scores":[0,null]}"#,
            r#"{"name":"guard","scores":{"a":0,"b":1}}"#,
            r#"{"name":"two words","scores":[0,1]}"#,
            r#"{"name":"","scores":[0,1]}"#,
            r#"{"name":"guard","version":"a\nb","scores":[0,1]}"#,
            r#"{"name":"guard","version":3,"scores":[0,1]}"#,
            r#"{"name":"guard","scores":[0,1]"#,
        ] {
            assert!(said(invalid).is_none(), "{invalid}");
        }
    }
}
