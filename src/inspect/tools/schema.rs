//! A tool's schema, compiled once, and the validation of a call's arguments against it.
//!
//! Drafts 7, 2019-09 and 2020-12 of JSON Schema, by the `jsonschema` crate. Nothing is fetched,
//! regexes are linear, and the maximum duration of a check is known before it starts.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use super::work::{Refs, Work};
use crate::config::PathFormat;
use crate::inspect::SkipReason;

/// Maximum length of a schema that is compiled, in bytes.
const SCHEMA_BYTES: usize = 128 << 10;
/// Maximum size of the program that a regex of a schema is compiled to, in bytes.
const REGEX_BYTES: usize = 256 << 10;
/// Maximum number of faults reported for one call.
const FAULTS: usize = 4;
/// Maximum length of a reported fault, in characters.
const FAULT_CHARS: usize = 300;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) value: Value,
    validator: Validator,
    refs: Refs,
}

/// A fault in a call's arguments, in words without their content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArgumentFault {
    /// The argument, names and indices joined by dots; empty for the arguments as a whole.
    pub(super) argument: String,
    /// The location within the arguments, as a JSON pointer.
    pub(super) pointer: String,
    pub(super) description: String,
}

/// The error that a call is too costly to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooCostly;

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it cannot be compiled: such a schema is not enforced, and that is recorded.
    pub(super) fn compile(written: &str) -> Result<Self, SkipReason> {
        // In JSON Schema, a format is an annotation since 2019-09, and servers rarely check it.
        Self::compile_with(written, false)
    }

    /// Compiles an operator's schema, whose formats are enforced.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub(super) fn compile_strict(written: &str) -> Result<Self, SkipReason> {
        Self::compile_with(written, true)
    }

    fn compile_with(written: &str, formats: bool) -> Result<Self, SkipReason> {
        if written.len() > SCHEMA_BYTES {
            return Err(SkipReason::SchemaTooLong);
        }
        let value: Value =
            serde_json::from_str(written).map_err(|_| SkipReason::SchemaUnreadable)?;
        let draft = match value
            .get("$schema")
            .and_then(Value::as_str)
            .map(|uri| uri.trim_end_matches('#'))
        {
            None | Some("https://json-schema.org/draft/2020-12/schema") => Draft::Draft202012,
            Some("https://json-schema.org/draft/2019-09/schema") => Draft::Draft201909,
            Some(
                "http://json-schema.org/draft-07/schema"
                | "https://json-schema.org/draft-07/schema",
            ) => Draft::Draft7,
            Some("http://json-schema.org/draft-06/schema") => Draft::Draft6,
            Some("http://json-schema.org/draft-04/schema") => Draft::Draft4,
            Some(_) => return Err(SkipReason::SchemaDialect),
        };
        let refs = Refs::read(&value)?;
        let validator = jsonschema::options()
            .with_draft(draft)
            .offline()
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(REGEX_BYTES)
                    .dfa_size_limit(REGEX_BYTES),
            )
            .with_format("absolute-path", |path: &str| {
                is_path(PathFormat::Absolute, path)
            })
            .with_format("relative-path", |path: &str| {
                is_path(PathFormat::Relative, path)
            })
            .should_validate_formats(formats)
            .build(&value);
        Ok(Self {
            validator: validator.map_err(|_| SkipReason::SchemaInvalid)?,
            value,
            refs,
        })
    }

    /// Returns the faults of arguments; none if they conform.
    ///
    /// # Errors
    /// The check would take too long.
    pub(super) fn check(&self, arguments: &Value) -> Result<Vec<ArgumentFault>, TooCostly> {
        Work::within_bounds(&self.value, &self.refs, arguments)?;
        if self.validator.is_valid(arguments) {
            return Ok(Vec::new());
        }
        Ok(self
            .validator
            .iter_errors(arguments)
            .take(FAULTS)
            .map(|error| describe_fault(&error))
            .collect())
    }
}

fn describe_fault(error: &jsonschema::ValidationError<'_>) -> ArgumentFault {
    use jsonschema::error::ValidationErrorKind as Kind;
    let pointer = error.instance_path().as_str().to_owned();
    let names: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|name| name.replace("~1", "/").replace("~0", "~"))
        .collect();
    let mut argument = names.join(".");
    let description = match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            argument = if argument.is_empty() {
                name.to_owned()
            } else {
                format!("{argument}.{name}")
            };
            "is missing".to_owned()
        }
        Kind::AdditionalProperties { unexpected } => {
            let unknown_names: Vec<String> = unexpected
                .iter()
                .take(3)
                .map(|name| format!("`{}`", shorten(name, 64)))
                .collect();
            format!(
                "has {} that the tool does not know",
                unknown_names.join(", ")
            )
        }
        _ => error.masked_with("it").to_string(),
    };
    ArgumentFault {
        argument: shorten(&argument, 128),
        pointer,
        description: shorten(&description, FAULT_CHARS),
    }
}

fn shorten(text: &str, max_chars: usize) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(max_chars)
        .collect()
}

/// Returns whether a text is a path of the given format.
pub(super) fn is_path(format: PathFormat, path: &str) -> bool {
    let drive = path
        .get(1..3)
        .is_some_and(|rest| rest == ":\\" || rest == ":/");
    let absolute = path.starts_with('/') || drive;
    let sound = !path.is_empty()
        && !path.contains('\0')
        && path.split(['/', '\\']).all(|part| part != "..");
    match format {
        PathFormat::Absolute => sound && absolute,
        PathFormat::Relative => {
            sound && !absolute && !path.starts_with(['\\', '~']) && !path.contains(':')
        }
    }
}
