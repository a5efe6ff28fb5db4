//! URLs: where a call's arguments lead in a network.

mod hosts;

pub use hosts::{HostList, HostPattern, Hosts, Said};
