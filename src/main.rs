//! The `lychgate` command.

use std::process::ExitCode;

/// jemalloc returns freed memory to the system within seconds, on threads of its own; glibc keeps
/// it for as long as the process lives.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    lychgate::cli::main()
}
