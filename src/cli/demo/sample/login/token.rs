//! The token endpoint and the revocation endpoint.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::authorize::scopes;
use super::clients::Client;
use super::{
    Answer, Grant, LONG_TTL, Login, OFFLINE, Pairs, Refresh, State, device, error, reply, secret,
};

impl Login {
    /// Issues tokens (RFC 6749, sections 4.1.3, 4.4.2 and 6; RFC 8628, section 3.4).
    pub(super) fn token(&self, headers: &HeaderMap, form: &Pairs) -> Answer {
        let (id, client) = match self.client(headers, form) {
            Ok(known) => known,
            Err(refusal) => return *refusal,
        };
        let grant = form.get("grant_type").unwrap_or_default();
        if !client.allows_grant(grant) {
            return error("unauthorized_client");
        }
        // RFC 8628 does not define `resource`; if it is present, it must match.
        let resource = form.get("resource");
        if resource != Some(&self.settings.resource)
            && (grant != device::GRANT || resource.is_some())
        {
            return error("invalid_target");
        }
        let mut state = self.state.lock();
        let result = match grant {
            "authorization_code" => redeem(&mut state, &id, form),
            "refresh_token" => refresh(&mut state, &id, form),
            "client_credentials" => {
                scopes(form.get("scope")).map(|scopes| client_grant(id, scopes))
            }
            device::GRANT => device::poll(&mut state, &id, form),
            _ => Err("unsupported_grant_type"),
        };
        match result {
            Ok(given) => self.issue_tokens(&mut state, &client, given),
            Err(code) => error(code),
        }
    }

    fn issue_tokens(&self, state: &mut State, client: &Client, grant: Grant) -> Answer {
        let access = secret();
        let mut response = json!({
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.settings.access.as_secs(),
            "scope": grant.scopes.join(" "),
        });
        if client.allows_grant("refresh_token")
            && grant.scopes.iter().any(|scope| scope == OFFLINE)
            && let Some(object) = response.as_object_mut()
        {
            let refresh = secret();
            object.insert("refresh_token".to_owned(), refresh.as_str().into());
            state.refresh.put(
                refresh,
                Refresh {
                    grant: grant.clone(),
                    used: false,
                },
                LONG_TTL,
            );
        }
        state.access.put(access, grant, self.settings.access);
        reply(StatusCode::OK, &response)
    }

    /// Revokes a token, and everything else issued for the same login (RFC 7009, section 2.1).
    pub(super) fn revoke(&self, headers: &HeaderMap, form: &Pairs) -> Answer {
        let (id, _) = match self.client(headers, form) {
            Ok(known) => known,
            Err(refusal) => return *refusal,
        };
        let Some(token) = form.get("token") else {
            return error("invalid_request");
        };
        let mut state = self.state.lock();
        let refresh_grant = state
            .refresh
            .get(token)
            .map(|refresh| refresh.grant.clone());
        let grant = refresh_grant.or_else(|| state.access.get(token).cloned());
        if let Some(given) = grant.filter(|given| given.client == id) {
            state.revoke_family(&given.family);
        }
        // Revoking an invalid token succeeds (RFC 7009, section 2.2).
        reply(StatusCode::OK, &json!({}))
    }
}

fn client_grant(client: String, scopes: Vec<String>) -> Grant {
    Grant {
        family: secret(),
        client,
        scopes: scopes
            .into_iter()
            .filter(|scope| scope != OFFLINE)
            .collect(),
    }
}

fn redeem(state: &mut State, id: &str, form: &Pairs) -> Result<Grant, &'static str> {
    let code = state
        .codes
        .get(form.get("code").unwrap_or_default())
        .ok_or("invalid_grant")?;
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(
        form.get("code_verifier").unwrap_or_default(),
    ));
    let is_valid = code.grant.client == id
        && form.get("redirect_uri") == Some(&code.redirect_uri)
        && challenge == code.challenge;
    let grant = code.grant.clone();
    let was_used = std::mem::replace(&mut code.used, true);
    if was_used {
        // RFC 6749, section 4.1.2: the tokens issued for a code are revoked if it is used twice.
        state.revoke_family(&grant.family);
    }
    if is_valid && !was_used {
        Ok(grant)
    } else {
        Err("invalid_grant")
    }
}

fn refresh(state: &mut State, id: &str, form: &Pairs) -> Result<Grant, &'static str> {
    let token = form.get("refresh_token").unwrap_or_default();
    let refresh = state
        .refresh
        .get(token)
        .filter(|refresh| refresh.grant.client == id)
        .ok_or("invalid_grant")?;
    let mut grant = refresh.grant.clone();
    if refresh.used {
        // One of the two uses is by a thief (RFC 9700, section 4.14.2).
        state.revoke_family(&grant.family);
        return Err("invalid_grant");
    }
    if let Some(requested) = form.get("scope") {
        let requested_scopes = scopes(Some(requested))?;
        if !requested_scopes
            .iter()
            .all(|scope| grant.scopes.contains(scope))
        {
            return Err("invalid_scope");
        }
        grant.scopes = requested_scopes;
    }
    refresh.used = true;
    Ok(grant)
}
