//! The `lychgate` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    lychgate::cli::main()
}
