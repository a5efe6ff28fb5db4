//! A reverse proxy that only forwards: the cost of a call with hyper without any inspection.

use std::error::Error;
use std::io;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

type Failure = Box<dyn Error + Send + Sync>;

pub async fn serve(port: u16, upstream: u16) -> io::Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<HttpConnector, Incoming> =
        Client::builder(TokioExecutor::new()).build(connector);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let client = client.clone();
        let forward = service_fn(move |mut request: Request<Incoming>| {
            let client = client.clone();
            async move {
                let path = request
                    .uri()
                    .path_and_query()
                    .map_or("/", |path| path.as_str());
                *request.uri_mut() = format!("http://127.0.0.1:{upstream}{path}").parse()?;
                Ok::<_, Failure>(client.request(request).await?)
            }
        });
        // An agent that disconnects ends the connection with an error, which is ignored.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), forward));
    }
}
