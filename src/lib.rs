//! lychgate: a security gateway between AI agents and MCP servers.
//!
//! `src/README.md` describes the modules and their floors.

pub mod app;
pub mod approval;
pub mod cli;
pub mod config;
pub mod detect;
pub mod document;
pub mod export;
pub mod inspect;
pub mod listen;
pub mod message;
pub mod oauth;
pub mod pins;
pub mod protocol;
pub mod proxy;
pub mod reach;
pub mod record;
pub mod review;
pub mod rules;
pub mod seal;
pub mod text;
pub mod trust;
pub mod upstream;
