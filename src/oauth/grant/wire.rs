//! One request to an endpoint of an authorization server, with client authentication, and the
//! strict parsing of its response.

use std::future::Future;
use std::pin::Pin;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use oauth2::basic::{
    BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse,
};
use oauth2::url::form_urlencoded;
use oauth2::{
    AsyncHttpClient, AuthType, ClientId, ClientSecret, EndpointNotSet, EndpointSet, HttpRequest,
    HttpResponse, RequestTokenError, StandardRevocableToken, TokenUrl,
};
use serde::Serialize;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::GrantError;
use super::tokens::Tokens;
use crate::message::{Json, ValueKind};
use crate::oauth::assertion::SigningKey;
use crate::oauth::fetch::Fetcher;
use crate::oauth::{AuthorizationServer, Client, ClientAuth, Scopes, SecretText, strict, unix_now};

/// Maximum length of a response, in bytes.
const MOST_BYTES: usize = 1 << 20;
/// Lifetime of a client assertion (RFC 7523, section 3: no longer than necessary).
const ASSERTION_SECONDS: u64 = 120;
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The client of the `oauth2` crate, as used here.
pub(super) type OAuth<Token = EndpointSet, Auth = EndpointNotSet> = oauth2::Client<
    BasicErrorResponse,
    Tokens,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    Auth,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    Token,
>;

/// A client of an authorization server, and what it requests there.
#[derive(Clone, Copy)]
pub struct TokenClient<'a> {
    pub fetcher: &'a Fetcher,
    pub server: &'a AuthorizationServer,
    pub client: &'a Client,
    /// The key for `private_key_jwt`.
    pub key: Option<&'a SigningKey>,
    /// The resource that tokens are for (RFC 8707).
    pub resource: &'a str,
    /// The scopes that are requested.
    pub scopes: &'a Scopes,
}

impl TokenClient<'_> {
    /// Returns the crate's client with this client's id and, if it has one, its secret. For other
    /// client authentication see [`Self::assertion_parameters`].
    pub(super) fn oauth(&self) -> Result<OAuth, GrantError> {
        let url = TokenUrl::new(self.server.token_endpoint.clone())
            .map_err(|_| GrantError::Url("token endpoint"))?;
        let client = OAuth::new(ClientId::new(self.client.id.clone())).set_token_uri(url);
        let secret = || {
            self.client
                .secret
                .as_ref()
                .map(|secret| ClientSecret::new(secret.expose().to_owned()))
        };
        let (kind, secret) = match self.client.auth {
            ClientAuth::None | ClientAuth::PrivateKeyJwt => (AuthType::RequestBody, None),
            ClientAuth::Basic => (AuthType::BasicAuth, secret()),
            ClientAuth::Post => (AuthType::RequestBody, secret()),
        };
        let client = client.set_auth_type(kind);
        Ok(match secret {
            Some(secret) => client.set_client_secret(secret),
            None => client,
        })
    }

    /// Returns the parameters of `private_key_jwt` (RFC 7523, section 2.2), created for each
    /// request; none for other methods.
    pub(super) fn assertion_parameters(
        &self,
    ) -> Result<Vec<(&'static str, SecretText)>, GrantError> {
        #[derive(Serialize)]
        struct Claims<'c> {
            iss: &'c str,
            sub: &'c str,
            aud: &'c str,
            jti: String,
            iat: u64,
            exp: u64,
        }
        if self.client.auth != ClientAuth::PrivateKeyJwt {
            return Ok(vec![]);
        }
        let key = self
            .key
            .ok_or(GrantError::Key("`private_key_jwt` needs `client_key`"))?;
        let id = self.client.id.as_str();
        let iat = unix_now();
        let claims = Claims {
            iss: id,
            sub: id,
            aud: &self.server.issuer,
            jti: Uuid::new_v4().to_string(),
            iat,
            exp: iat.saturating_add(ASSERTION_SECONDS),
        };
        let assertion = key.sign(&claims, &self.server.token_endpoint_auth_signing_algs)?;
        Ok(vec![
            (
                "client_assertion_type",
                SecretText::new(ASSERTION_TYPE.to_owned()),
            ),
            ("client_assertion", assertion),
        ])
    }

    /// Sends a request for the requested scopes that the crate does not support, and returns the
    /// JSON object of its answer.
    pub(super) async fn ask(
        &self,
        url: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Json, GrantError> {
        let scope = self.scopes.parameter();
        let mut parameters = parameters.to_vec();
        parameters.extend(scope.as_deref().map(|scope| ("scope", scope)));
        read(&self.post(url, &parameters).await?)
    }

    /// Sends a request that the crate does not support: a form with client authentication.
    pub(super) async fn post(
        &self,
        url: &str,
        parameters: &[(&str, &str)],
    ) -> Result<HttpResponse, GrantError> {
        Ok(self
            .fetcher
            .exchange(self.request(url, parameters)?)
            .await?)
    }

    fn request(&self, url: &str, parameters: &[(&str, &str)]) -> Result<HttpRequest, GrantError> {
        let mut request = Request::new(Vec::new());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url
            .parse::<Uri>()
            .map_err(|_| GrantError::Url("endpoint"))?;
        request
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static("application/json"));
        request.headers_mut().insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(parameters);
        match (self.client.auth, &self.client.secret) {
            (ClientAuth::Basic, Some(secret)) => {
                // Both parts are encoded before they are joined (RFC 6749, section 2.3.1).
                let encode = |text: &str| {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                let credentials = Zeroizing::new(format!(
                    "{}:{}",
                    encode(&self.client.id),
                    encode(secret.expose())
                ));
                let value =
                    Zeroizing::new(format!("Basic {}", STANDARD.encode(credentials.as_bytes())));
                let mut value = HeaderValue::from_str(&value)
                    .map_err(|_| GrantError::Key("`client_secret` cannot be sent"))?;
                value.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, value);
            }
            (ClientAuth::Post, Some(secret)) => {
                form.append_pair("client_id", &self.client.id)
                    .append_pair("client_secret", secret.expose());
            }
            _ => {
                form.append_pair("client_id", &self.client.id);
            }
        }
        for (name, value) in self.assertion_parameters()? {
            form.append_pair(name, value.expose());
        }
        *request.body_mut() = form.finish().into_bytes();
        Ok(request)
    }
}

/// Sends the crate's requests.
impl<'c> AsyncHttpClient<'c> for TokenClient<'_> {
    type Error = GrantError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, GrantError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(async move {
            let mut response = self.fetcher.exchange(request).await?;
            read(&response)?;
            // The body is JSON, whatever its content type; and a response that contains a token is
            // successful, whichever 2xx status it has.
            response.headers_mut().remove(CONTENT_TYPE);
            *response.status_mut() = StatusCode::OK;
            Ok(response)
        })
    }
}

/// Returns the JSON object of a response that is not an error. Some servers report errors with 200,
/// so the status alone is not sufficient.
pub(super) fn read(response: &HttpResponse) -> Result<Json, GrantError> {
    check_available(response)?;
    let json =
        strict::parse(response.body(), MOST_BYTES, 10_000, 16).ok_or(GrantError::Unreadable)?;
    let root = json.root();
    match root
        .get("error")
        .filter(|error| error.kind() != ValueKind::Null)
    {
        Some(error) => Err(error
            .str()
            .map_or(GrantError::Unreadable, |code| GrantError::of_code(&code))),
        None if root.kind() != ValueKind::Object || !response.status().is_success() => {
            Err(GrantError::Unreadable)
        }
        None => Ok(json),
    }
}

/// Checks that the response is not a server failure.
pub(super) fn check_available(response: &HttpResponse) -> Result<(), GrantError> {
    let status = response.status();
    let busy = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
    );
    if status.is_server_error() || busy {
        return Err(GrantError::Unreachable(format!(
            "the answer has the status {}",
            status.as_u16()
        )));
    }
    Ok(())
}

impl From<RequestTokenError<Self, BasicErrorResponse>> for GrantError {
    fn from(error: RequestTokenError<Self, BasicErrorResponse>) -> Self {
        match error {
            RequestTokenError::Request(error) => error,
            // These contain the response body.
            RequestTokenError::ServerResponse(_)
            | RequestTokenError::Parse(..)
            | RequestTokenError::Other(_) => Self::Unreadable,
        }
    }
}
