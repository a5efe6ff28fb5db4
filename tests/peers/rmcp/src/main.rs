//! `lychgate-peer agent` follows a plan, as `clients/python_sdk.py` does; `lychgate-peer serve` is
//! a server over stdio.

mod agent;
mod server;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("agent") => agent::follow().await,
        Some("serve") => server::serve().await,
        _ => {
            eprintln!("usage: lychgate-peer agent|serve");
            std::process::exit(2);
        }
    }
}
