//! Builds the parts of a gate from the config, runs them, reloads them and drains them.

mod build;
mod health;
mod reload;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use build::{expired, gate_files, policies, stores, suppressions, unencrypted};

use crate::config::{ApprovalConfig, Config, UpstreamConfig};
use crate::document::Fault;
use crate::export::Exporter;
use crate::listen::approvals::ApprovalEndpoint;
use crate::listen::console::Console;
use crate::listen::{self, Frontend};
use crate::oauth::Shared;
use crate::protocol::UpstreamName;
use crate::proxy::Gate;
use crate::record::Recorder;

/// A running gate.
pub struct Running {
    /// The address for agents.
    pub address: SocketAddr,
    /// The address of `/metrics` and the other admin endpoints.
    pub admin: Option<SocketAddr>,
    front: Arc<Frontend>,
    gate: Arc<Gate>,
    logins: Arc<Shared>,
    draining: watch::Sender<bool>,
    reload: watch::Sender<u64>,
    serving: JoinHandle<()>,
    background_tasks: Vec<JoinHandle<()>>,
    exporter: Option<Exporter>,
}

/// Starts a gate. `source` is the file that the config was read from, which is checked for reloads.
/// An upstream that cannot be used as configured is down, and does not prevent the start.
///
/// # Errors
/// Everything that prevents the start.
pub async fn start(config: Config, source: Option<PathBuf>) -> Result<Running, Vec<Fault>> {
    let mut faults = Vec::new();
    let stamps = reload::stamps(&config, source.as_deref());
    let loaded = build::policies(&config)
        .map_err(|more| faults.extend(more))
        .ok();
    let recorder = Recorder::new(&config.audit);
    let recorder = recorder
        .map_err(|error| faults.push(Fault::of_file("audit", error.to_string(), None)))
        .ok();
    let stores = build::stores(&config)
        .map_err(|more| faults.extend(more))
        .ok();
    let recorder = recorder
        .zip(stores)
        .map(|(recorder, stores)| Arc::new(recorder.with_stores(stores)));
    let logins = recorder.as_ref().and_then(|recorder| {
        let shared = Shared::new(&config.oauth, recorder.clone());
        shared
            .map_err(|error| faults.push(Fault::of_file("oauth", error.to_string(), None)))
            .ok()
            .map(Arc::new)
    });
    let tls = config
        .listen
        .tls
        .as_ref()
        .map(listen::tls::acceptor)
        .transpose();
    let tls = tls
        .map_err(|error| faults.push(Fault::of_file("listen.tls", error, None)))
        .ok()
        .flatten();
    let listener = bind(config.listen.address, "listen.address", &mut faults).await;
    let admin = match config.admin.address {
        Some(address) => bind(address, "admin.address", &mut faults).await,
        None => None,
    };
    let (Some(loaded), Some(listener), Some(recorder), Some(logins), true) =
        (loaded, listener, recorder, logins, faults.is_empty())
    else {
        return Err(faults);
    };
    let build_upstream = |(name, upstream): (&String, &UpstreamConfig)| {
        let name = UpstreamName(name.as_str().into());
        let built = build::upstream(&name, upstream, &config.limits, Some(&logins));
        (name, built)
    };
    let upstreams = config.upstreams.iter().map(build_upstream).collect();
    let address = address_of(&listener)?;
    let admin_address = admin.as_ref().map(address_of).transpose()?;
    logins.logins.serve_at(&base_url(&config, address));
    let exporter = exporter(&config, &recorder)?;
    build::announce(&recorder, &loaded);
    build::check_pins(&config.pins);
    unencrypted(&config)
        .iter()
        .for_each(|warning| tracing::warn!("{warning}"));
    let gate = Arc::new(Gate::new(upstreams, loaded, recorder, &config)?);
    gate.record_pending_definitions();
    let (draining, drained) = watch::channel(false);
    let front = Arc::new(
        Frontend::new(gate.clone(), &config, address, logins.clone(), drained)
            .map_err(|fault| vec![fault])?,
    );
    let serving = tokio::spawn(listen::serve(front.clone(), listener, tls));
    let mut background_tasks = Vec::new();
    if let Some(listener) = admin {
        let port = admin_address.map_or(0, |address| address.port());
        let approval_endpoint =
            open_approval_endpoint(&gate, &config.approval, port)?.map(Arc::new);
        approval_endpoint
            .as_ref()
            .map_or(Ok(()), |endpoint| prove_by(&front, endpoint.token_sha256()))?;
        let console_endpoint = approval_endpoint
            .as_ref()
            .filter(|_| config.admin.has_console());
        let console = console_endpoint
            .map(|endpoint| Console::open(&gate, endpoint, &config, source.clone()));
        background_tasks.push(tokio::spawn(listen::admin::serve(
            front.clone(),
            listener,
            config.admin.clone(),
            approval_endpoint,
            console,
        )));
    }
    let (reload, reload_requests) = watch::channel(0);
    background_tasks.push(tokio::spawn(health::watch(gate.clone())));
    let reloads = reload::watch(
        front.clone(),
        gate.clone(),
        logins.clone(),
        config,
        source,
        stamps,
        reload_requests,
    );
    background_tasks.push(tokio::spawn(reloads));
    Ok(Running {
        address,
        admin: admin_address,
        front,
        gate,
        logins,
        draining,
        reload,
        serving,
        background_tasks,
        exporter,
    })
}

/// Starts the exporter of audit lines, spans and metrics to a collector, if the config names one.
///
/// # Errors
/// The setting that cannot be used.
pub fn exporter(config: &Config, recorder: &Arc<Recorder>) -> Result<Option<Exporter>, Vec<Fault>> {
    let result = config
        .otlp
        .as_ref()
        .map(|otlp| Exporter::start(otlp, recorder))
        .transpose();
    result.map_err(|error| vec![Fault::of_file("otlp", error, None)])
}

/// Opens the endpoint at which people answer approval requests, after its token is written to a
/// file. The endpoint is optional: if the config names no file for the token and none can be
/// written, there is none.
fn open_approval_endpoint(
    gate: &Gate,
    config: &ApprovalConfig,
    port: u16,
) -> Result<Option<ApprovalEndpoint>, Vec<Fault>> {
    let Some(file) = config.token_file(port) else {
        return Ok(None);
    };
    match ApprovalEndpoint::open(gate, &file) {
        Ok(endpoint) => Ok(Some(endpoint)),
        Err(error) if config.token_file.is_some() => {
            let hint = "name a file in a folder that the gate can write to";
            Err(vec![Fault::of_file(
                "approval.token_file",
                error.to_string(),
                Some(hint),
            )])
        }
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "cannot write the admin token for `lychgate approve`; set `token_file`");
            Ok(None)
        }
    }
}

fn prove_by(front: &Frontend, token_sha256: [u8; 32]) -> Result<(), Vec<Fault>> {
    front
        .enable_canaries(token_sha256)
        .map_err(|error| vec![Fault::of_file("prove", error.to_string(), None)])
}

/// Returns the URL at which a browser on this machine reaches the gate.
fn base_url(config: &Config, address: SocketAddr) -> String {
    let scheme = if config.listen.tls.is_some() {
        "https"
    } else {
        "http"
    };
    match address {
        address if address.ip().is_unspecified() => {
            format!("{scheme}://127.0.0.1:{}", address.port())
        }
        address => format!("{scheme}://{address}"),
    }
}

async fn bind(address: SocketAddr, name: &str, faults: &mut Vec<Fault>) -> Option<TcpListener> {
    let listener = TcpListener::bind(address).await;
    let hint = "choose another address, or stop the process that listens there";
    listener
        .map_err(|error| {
            faults.push(Fault::of_file(
                name,
                format!("cannot listen on {address}: {error}"),
                Some(hint),
            ))
        })
        .ok()
}

fn address_of(listener: &TcpListener) -> Result<SocketAddr, Vec<Fault>> {
    listener
        .local_addr()
        .map_err(|error| vec![Fault::of_file("listen.address", error.to_string(), None)])
}

impl Running {
    /// Returns the gate itself.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Permits the holder of this token to test the gate with canaries.
    ///
    /// # Errors
    /// The canaries cannot be logged.
    pub fn prove_by(&self, token: &str) -> Result<(), Vec<Fault>> {
        prove_by(&self.front, Sha256::digest(token).into())
    }

    /// Checks config and rules for changes at once, and reopens the audit file (SIGHUP).
    pub fn reload(&self) {
        self.reload.send_modify(|times| *times += 1);
    }

    /// Shuts down gracefully: accepts no new connections, lets open calls finish within
    /// `drain_seconds`, then shuts down the upstreams.
    pub async fn drain(self) {
        let deadline = self.gate.limits().drain;
        if self.draining.send(true).is_err() {
            tracing::debug!("no calls left to drain");
        }
        let mut serving = self.serving;
        if tokio::time::timeout(deadline, &mut serving).await.is_err() {
            tracing::warn!(
                limit = "drain_seconds",
                "drain timed out; closing open calls"
            );
            serving.abort();
        }
        for task in self.background_tasks {
            task.abort();
        }
        self.gate.shutdown().await;
        self.logins.idle().await;
        self.gate.recorder().flush();
        if let Some(exporter) = self.exporter
            && tokio::task::spawn_blocking(move || exporter.close())
                .await
                .is_err()
        {
            tracing::error!("queued OTLP records could not be sent");
        }
    }
}
