//! Tokens that are obtained without a person.

use std::time::Instant;

use super::*;

impl Authorizer {
    /// Obtains a token without a person.
    pub(super) async fn renew_without_user(
        &self,
        slot: &LoginSlot,
        principal: &Principal,
        plan: Plan,
        account: Option<Account>,
    ) -> Outcome {
        let server = &plan.server;
        let name = &self.shared.config.client_name;
        let known_client = account.as_ref().map(|account| &account.client);
        let client = identity::identify(
            &self.fetcher,
            server,
            &self.login,
            None,
            &[],
            known_client,
            name,
        )
        .await;
        let client = client.map_err(|error| identity_error(&error))?;
        let key = self.key.as_ref();
        let resource = plan.party.resource.as_str();
        let scopes = &plan.scopes;
        let granted = match &self.login.grant {
            Grant::Enterprise(config) => {
                let idp = self.idp_token_endpoint(config).await?;
                grant::enterprise(
                    &self.fetcher,
                    &idp,
                    config,
                    server,
                    &client,
                    key,
                    resource,
                    scopes,
                )
                .await
            }
            Grant::Client | Grant::Person => {
                grant::client_credentials(&self.fetcher, server, &client, key, resource, scopes)
                    .await
            }
        };
        let Plan {
            party,
            server,
            scopes,
        } = plan;
        let upstream = self.upstream.clone();
        match granted {
            Ok(granted) => {
                let granted = Some(granted);
                let asked = scopes;
                let account = Account {
                    upstream,
                    party,
                    server,
                    client,
                    granted,
                    asked,
                    last_refresh_unix: None,
                    last_error: None,
                };
                self.store_renewal(slot, principal, account).await
            }
            Err(error) => {
                slot.state().not_before = Some(Instant::now() + RETRY_AFTER);
                self.record(
                    principal,
                    if error.is_transient() {
                        "unreachable"
                    } else {
                        "refused"
                    },
                    Some(&error.to_string()),
                );
                Err(login_error(&error))
            }
        }
    }

    /// Returns the token endpoint of the organisation's login server.
    async fn idp_token_endpoint(&self, config: &EnterpriseConfig) -> Result<String, LoginError> {
        if let Some(endpoint) = &config.token_endpoint {
            return Ok(endpoint.clone());
        }
        let metadata = server_metadata(&self.fetcher, &config.issuer).await;
        metadata
            .map(|server| server.token_endpoint)
            .map_err(|error| discovery_error(&error))
    }
}
