//! Tokens that are obtained without a person.

use std::time::Instant;

use super::*;

impl Authorizer {
    /// Obtains a token without a person.
    pub(super) async fn renew_without_user(
        &self,
        slot: &LoginSlot,
        plan: Plan,
        account: Option<Account>,
    ) -> Outcome {
        let client = identity::identify(
            &self.fetcher,
            &plan.server,
            &self.login,
            None,
            &[],
            account.as_ref().map(|account| &account.client),
            &self.shared.config.client_name,
        )
        .await?;
        let token_client = self.token_client(&plan, &client);
        let granted = match &self.login.grant {
            Grant::Enterprise(config) => {
                let idp = self.idp_token_endpoint(config).await?;
                token_client.enterprise(&idp, config).await
            }
            Grant::Client | Grant::Person => token_client.client_credentials().await,
        };
        match granted {
            Ok(granted) => {
                let account = Account {
                    upstream: self.upstream.clone(),
                    party: plan.party,
                    server: plan.server,
                    client,
                    granted: Some(granted),
                    asked: plan.scopes,
                    last_refresh_unix: None,
                    last_error: None,
                };
                self.store_renewal(slot, account).await
            }
            Err(error) => {
                slot.state().not_before = Some(Instant::now() + RETRY_AFTER);
                let outcome = if error.is_transient() {
                    "unreachable"
                } else {
                    "refused"
                };
                self.record(&slot.principal, outcome, Some(&error.to_string()));
                Err(error.into())
            }
        }
    }

    /// Returns the token endpoint of the organisation's login server.
    async fn idp_token_endpoint(&self, config: &EnterpriseConfig) -> Result<String, LoginError> {
        if let Some(endpoint) = &config.token_endpoint {
            return Ok(endpoint.clone());
        }
        let server = server_metadata(&self.fetcher, &config.issuer).await?;
        Ok(server.token_endpoint)
    }
}
