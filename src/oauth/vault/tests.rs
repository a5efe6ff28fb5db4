use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::config::{Secret, VaultKey};
use crate::oauth::{
    AuthorizationServer, Client, ClientAuth, LoginParty, Origin, Scopes, SecretText, TokenGrant,
    unix_now,
};

/// A token that must not be readable anywhere.
const TOKEN: &str = "planted-access-7f3a";

fn config(folder: &Path) -> OAuthConfig {
    let vault = Some(folder.join("vault"));
    let vault_key = VaultKey::File(folder.join("key"));
    OAuthConfig {
        vault,
        vault_key,
        lease: Duration::from_secs(2),
        ..OAuthConfig::default()
    }
}

fn account(upstream: &str, principal: &Principal, access: &str) -> Account {
    let issuer = "https://login.example/t1".to_owned();
    let hidden = |text: &str| SecretText::new(text.to_owned());
    Account {
        upstream: upstream.into(),
        party: LoginParty {
            issuer: issuer.clone(),
            resource: "https://mcp.example/mcp".into(),
            principal: principal.clone(),
        },
        server: AuthorizationServer {
            issuer,
            authorization_endpoint: Some("https://login.example/t1/authorize".into()),
            token_endpoint: "https://login.example/t1/token".into(),
            token_endpoint_auth_methods: vec!["none".into()],
            scopes: Scopes::parse("read write"),
            iss_in_response: true,
            s256: true,
            ..AuthorizationServer::default()
        },
        client: Client {
            id: "client-1".into(),
            secret: Some(hidden("planted-secret-91bc")),
            secret_expires_unix: None,
            auth: ClientAuth::Post,
            origin: Origin::Registered,
            redirect_uris: vec!["http://127.0.0.1/oauth/callback".into()],
        },
        granted: Some(TokenGrant {
            access: hidden(access),
            refresh: Some(hidden("planted-refresh-c00d")),
            expires_unix: Some(1_800_000_000),
            given_unix: 1_799_999_000,
            scopes: Scopes::parse("read"),
        }),
        asked: Scopes::parse("read write"),
        last_refresh_unix: Some(1_799_999_000),
        last_error: Some("unreachable".into()),
    }
}

fn gates(upstream: &str) -> Account {
    account(upstream, &Principal::Gate, TOKEN)
}

fn sealed_file(folder: &Path, upstream: &str) -> PathBuf {
    folder
        .join("vault")
        .join(format!("{}.sealed", file_name(upstream, &Principal::Gate)))
}

/// Returns the folder with the leases of the gate's own login.
fn leases(folder: &Path, upstream: &str) -> PathBuf {
    sealed_file(folder, upstream).with_extension("lease")
}

/// Returns why a sealed login could not be opened.
fn why(error: VaultError) -> UnsealError {
    match error {
        VaultError::Sealed { why, .. } => why,
        other => panic!("{other}"),
    }
}

/// A folder, and the vault in it.
fn opened() -> (tempfile::TempDir, Vault) {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::open(&config(dir.path())).unwrap();
    (dir, vault)
}

/// Reads the gate's own login.
async fn read(vault: &Vault, upstream: &str) -> Result<Option<Account>, VaultError> {
    vault.read(upstream, &Principal::Gate).await
}

/// Takes the lease of the gate's own login.
async fn lease(vault: &Vault, upstream: &str) -> Lease {
    vault.lease(upstream, &Principal::Gate).await.unwrap()
}

fn value(digit: char) -> VaultKey {
    VaultKey::Value(Secret(digit.to_string().repeat(64)))
}

#[tokio::test]
async fn what_is_written_is_read_by_upstream_and_principal() {
    let (dir, vault) = opened();
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing is made before something is written"
    );
    assert_eq!(read(&vault, "a").await.unwrap(), None);
    assert!(vault.list().await.unwrap().accounts.is_empty());

    let principals = [
        Principal::Gate,
        Principal::Agent("x".into()),
        Principal::User("x".into()),
        Principal::User("y".into()),
    ];
    for (at, principal) in principals.iter().enumerate() {
        vault
            .write(&account("a", principal, &format!("token {at}")))
            .await
            .unwrap();
    }
    vault
        .write(&account("ab", &Principal::Agent(String::new()), "other"))
        .await
        .unwrap();
    for (at, principal) in principals.iter().enumerate() {
        let read = vault.read("a", principal).await.unwrap();
        assert_eq!(read, Some(account("a", principal, &format!("token {at}"))));
    }
    let again = Vault::open(&config(dir.path())).unwrap();
    let listed = again.list().await.unwrap();
    let whose: Vec<_> = listed
        .accounts
        .iter()
        .map(|of| format!("{} {}", of.upstream, of.party.principal))
        .collect();
    assert_eq!(
        whose,
        ["a gate", "a agent x", "a user x", "a user y", "ab agent "]
    );
    assert!(listed.faults.is_empty());

    let [_, _, user, _] = &principals;
    assert!(vault.erase("a", user).await.unwrap());
    assert!(!vault.erase("a", user).await.unwrap());
    assert_eq!(vault.read("a", user).await.unwrap(), None);
    assert_eq!(vault.list().await.unwrap().accounts.len(), 4);
}

#[tokio::test]
async fn nothing_readable_is_on_disk_or_shown_and_nobody_else_may_look() {
    let (dir, vault) = opened();
    let written = account(
        "github-prod",
        &Principal::User("alice@corp.example".into()),
        TOKEN,
    );
    vault.write(&written).await.unwrap();
    drop(lease(&vault, "github-prod").await);

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir.path().join("vault")), 0o700);
    assert_eq!(mode(&dir.path().join("key")), 0o600);
    let mut files = 0;
    for entry in fs::read_dir(dir.path().join("vault"))
        .unwrap()
        .map(Result::unwrap)
    {
        let path = entry.path();
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
        let bytes = if path.is_file() {
            fs::read(&path).unwrap()
        } else {
            vec![]
        };
        files += usize::from(path.is_file());
        let shown = format!("{} {}", path.display(), String::from_utf8_lossy(&bytes));
        assert_lacks!(shown, "planted", "github", "alice", "example", "client-1");
    }
    assert_eq!(files, 1);
    assert!(
        !format!("{written:?} {vault:?}").contains("planted"),
        "{written:?}"
    );
}

#[tokio::test]
async fn a_changed_byte_anywhere_is_noticed_and_left_as_it_is() {
    let (dir, vault) = opened();
    vault.write(&gates("a")).await.unwrap();
    vault.write(&gates("b")).await.unwrap();
    let path = sealed_file(dir.path(), "a");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, &bytes).unwrap();
        let error = read(&vault, "a").await.unwrap_err();
        assert!(
            matches!(error, VaultError::Sealed { .. }),
            "byte {at}: {error}"
        );
    }
    for length in [0, 3, 4, 20, 52, 53, 68, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = read(&vault, "a").await.unwrap_err();
        let told = error.to_string();
        assert!(told.contains(&path.display().to_string()), "{told}");
        assert_eq!(why(error), UnsealError::Damaged, "{length} bytes: {told}");
        assert!(
            vault.write(&gates("a")).await.is_err(),
            "never written over"
        );
        assert_eq!(fs::read(&path).unwrap(), whole[..length]);
    }
    let kept = vault.list().await.unwrap();
    assert_eq!((kept.accounts, kept.faults.len()), (vec![gates("b")], 1));
    fs::write(&path, [whole.as_slice(), &[0]].concat()).unwrap();
    assert!(read(&vault, "a").await.is_err());
    fs::write(&path, &whole).unwrap();
    assert_eq!(read(&vault, "a").await.unwrap(), Some(gates("a")));
}

#[tokio::test]
async fn swapped_and_overlong_files_and_those_of_later_versions_are_refused() {
    let (dir, vault) = opened();
    vault.write(&gates("a")).await.unwrap();
    vault.write(&gates("b")).await.unwrap();
    let a = sealed_file(dir.path(), "a");
    let b = sealed_file(dir.path(), "b");
    let whole = fs::read(&b).unwrap();
    fs::copy(&a, &b).unwrap();
    let fault = async || why(read(&vault, "b").await.unwrap_err());
    assert_eq!(fault().await, UnsealError::Damaged);
    let mut later = whole.clone();
    later[3] = 2;
    fs::write(&b, later).unwrap();
    assert_eq!(fault().await, UnsealError::NewerVersion);
    fs::write(&b, vec![0; seal::FILE_BYTES + 1]).unwrap();
    assert_eq!(fault().await, UnsealError::TooLong);
    // A login that cannot be opened can be erased and then created again.
    assert!(vault.erase("b", &Principal::Gate).await.unwrap());
    vault.write(&gates("b")).await.unwrap();
    let mut huge = gates("c");
    huge.last_error = Some("x".repeat(seal::FILE_BYTES));
    assert!(vault.write(&huge).await.is_err());
    assert_eq!(read(&vault, "c").await.unwrap(), None);
}

#[tokio::test]
async fn the_same_login_is_never_sealed_alike_twice() {
    let (dir, vault) = opened();
    let mut seen = BTreeSet::new();
    for _ in 0..20 {
        vault.write(&gates("a")).await.unwrap();
        let bytes = fs::read(sealed_file(dir.path(), "a")).unwrap();
        assert!(seen.insert(bytes[20..52].to_vec()), "a salt came twice");
        assert!(seen.insert(bytes[52..].to_vec()));
    }
}

#[tokio::test]
async fn fields_of_later_versions_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let config = OAuthConfig {
        vault_key: value('7'),
        ..config(dir.path())
    };
    let vault = Vault::open(&config).unwrap();
    vault.write(&gates("a")).await.unwrap();
    let mut json = serde_json::to_value(gates("a")).unwrap();
    json["of_tomorrow"] = serde_json::json!({"x": [1]});
    json["client"]["of_tomorrow"] = true.into();
    json.as_object_mut().unwrap().remove("last_error");
    let key = vault.0.keys_to_write().unwrap();
    let name = file_name("a", &Principal::Gate);
    fs::write(
        sealed_file(dir.path(), "a"),
        seal::seal(key.first().unwrap(), &name, &json).unwrap(),
    )
    .unwrap();
    let read = read(&vault, "a").await.unwrap();
    assert_eq!(
        read,
        Some(Account {
            last_error: None,
            ..gates("a")
        })
    );
}

#[tokio::test]
async fn a_changed_key_opens_what_the_earlier_one_sealed_until_all_is_sealed_anew() {
    let dir = tempfile::tempdir().unwrap();
    let of = |first, earlier| OAuthConfig {
        vault_key: first,
        earlier_vault_keys: earlier,
        ..config(dir.path())
    };
    let old = Vault::open(&of(value('1'), vec![])).unwrap();
    for upstream in ["a", "b", "c"] {
        old.write(&gates(upstream)).await.unwrap();
    }
    let stranger = Vault::open(&of(value('2'), vec![])).unwrap();
    let error = read(&stranger, "a").await.unwrap_err();
    assert!(error.to_string().contains("earlier_vault_keys"), "{error}");
    assert_eq!(why(error), UnsealError::OtherKey);
    assert!(
        stranger.write(&gates("a")).await.is_err(),
        "what the lost key sealed stays"
    );

    let both = Vault::open(&of(value('2'), vec![value('3'), value('1')])).unwrap();
    assert_eq!(read(&both, "a").await.unwrap(), Some(gates("a")));
    both.write(&gates("a")).await.unwrap();
    assert!(
        read(&stranger, "a").await.unwrap().is_some(),
        "sealed anew when written"
    );
    let path = sealed_file(dir.path(), "c");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let done = both.rekey().await.unwrap();
    assert_eq!((done.rekeyed, done.unchanged, done.faults.len()), (1, 1, 1));
    fs::write(&path, &whole).unwrap();
    let done = both.rekey().await.unwrap();
    assert_eq!((done.rekeyed, done.unchanged, done.faults.len()), (1, 2, 0));
    assert_eq!(stranger.list().await.unwrap().accounts.len(), 3);
    assert_eq!(old.list().await.unwrap().faults.len(), 3);
}

#[tokio::test]
async fn a_lost_key_is_not_replaced_while_it_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let first = Vault::open(&config(dir.path())).unwrap();
    first.write(&gates("a")).await.unwrap();
    let key = dir.path().join("key");
    fs::rename(&key, dir.path().join("kept")).unwrap();
    let vault = Vault::open(&config(dir.path())).unwrap();
    let error = vault.write(&gates("b")).await.unwrap_err();
    assert!(
        matches!(&error, VaultError::Key(told) if told.contains("restore the key")),
        "{error}"
    );
    assert!(!key.exists());
    // A new key is created beside the old one, since nothing is lost by it.
    let earlier_vault_keys = vec![VaultKey::File(dir.path().join("kept"))];
    let changed = Vault::open(&OAuthConfig {
        earlier_vault_keys,
        ..config(dir.path())
    })
    .unwrap();
    changed.write(&gates("b")).await.unwrap();
    assert!(key.exists());
    assert_eq!(changed.list().await.unwrap().accounts.len(), 2);
}

#[tokio::test]
async fn folders_and_keys_that_others_may_read_are_refused() {
    let (dir, vault) = opened();
    vault.write(&gates("a")).await.unwrap();
    let folder = dir.path().join("vault");
    let key = dir.path().join("key");
    for mode in [0o750, 0o701, 0o777] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        let error = Vault::open(&config(dir.path())).unwrap_err().to_string();
        assert_contains!(error, &format!("chmod 700 {}", folder.display()));
        assert!(read(&vault, "a").await.is_err());
        assert!(vault.write(&gates("a")).await.is_err());
        assert!(vault.lease("a", &Principal::Gate).await.is_err());
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let again = Vault::open(&config(dir.path())).unwrap();
    let error = again.list().await.unwrap_err().to_string();
    assert_contains!(error, &format!("chmod 600 {}", key.display()));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let again = Vault::open(&config(dir.path())).unwrap();
    assert_eq!(again.list().await.unwrap().accounts.len(), 1);
}

#[test]
fn keys_that_are_none_or_lie_in_the_vault_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let of = |vault_key| {
        Vault::open(&OAuthConfig {
            vault_key,
            ..config(dir.path())
        })
        .unwrap_err()
        .to_string()
    };
    let told = of(VaultKey::Value(Secret("hunter2".into())));
    assert_contains!(told, "openssl rand -hex 32");
    assert_lacks!(told, "hunter2");
    assert!(of(VaultKey::File(dir.path().join("vault/key"))).contains("lies in the vault itself"));
    assert!(of(VaultKey::Keyring("a b".into())).contains("name of an entry"));
}

#[tokio::test]
async fn what_a_writer_that_ended_left_behind_is_passed_over_and_swept_up() {
    let (dir, vault) = opened();
    vault.write(&gates("a")).await.unwrap();
    let folder = dir.path().join("vault");
    let aged = |path: &Path, seconds| {
        let at = std::time::SystemTime::now() - Duration::from_secs(seconds);
        fs::File::open(path).unwrap().set_modified(at).unwrap();
    };
    let old = folder.join("new-0");
    let fresh = folder.join("new-1");
    for path in [&old, &fresh] {
        fs::write(path, "half a login").unwrap();
    }
    aged(&old, 3600);
    let unused = leases(dir.path(), "gone");
    drop(lease(&vault, "gone").await);
    drop(lease(&vault, "a").await);
    let used = leases(dir.path(), "a");
    tokio::time::sleep(Duration::from_millis(50)).await;
    aged(&unused, 48 * 3600);
    aged(&used, 48 * 3600);
    assert_eq!(vault.list().await.unwrap().accounts, [gates("a")]);
    assert_eq!((old.exists(), fresh.exists()), (false, true));
    assert_eq!((unused.exists(), used.exists()), (false, true));
}

#[tokio::test]
async fn there_is_room_for_so_many() {
    let (dir, vault) = opened();
    vault.write(&gates("a")).await.unwrap();
    for at in 1..folder::MAX_LOGINS {
        fs::File::create(dir.path().join(format!("vault/{at:064x}.sealed"))).unwrap();
    }
    assert!(matches!(
        vault.write(&gates("b")).await,
        Err(VaultError::Full { .. })
    ));
    vault.write(&gates("a")).await.unwrap();
}

/// Repeatedly holds the lease of one login, and checks that no one else does: the file that it
/// creates must not exist.
async fn hold_in_turn(vault: &Vault, mark: &Path, times: usize) {
    for _ in 0..times {
        let lease = lease(vault, "a").await;
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(mark)
            .expect("two hold the lease at once");
        tokio::time::sleep(Duration::from_millis(1)).await;
        fs::remove_file(mark).unwrap();
        drop(lease);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_fifty_tasks_and_two_vaults_one_holds_the_lease_and_all_get_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = OAuthConfig {
        lease: Duration::from_secs(30),
        ..config(dir.path())
    };
    let vaults = [Vault::open(&config).unwrap(), Vault::open(&config).unwrap()];
    let holders = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(AtomicUsize::new(0));
    let tasks = (0..50).map(|at| {
        let vault = vaults[at % 2].clone();
        let holders = holders.clone();
        let done = done.clone();
        tokio::spawn(async move {
            let lease = lease(&vault, "a").await;
            assert!(lease.remaining() > Duration::from_secs(20));
            let held = holders.fetch_add(1, Ordering::SeqCst);
            assert_eq!(held, 0, "two hold the lease at once");
            tokio::time::sleep(Duration::from_millis(2)).await;
            assert_eq!(holders.fetch_sub(1, Ordering::SeqCst), 1);
            drop(lease);
            done.fetch_add(1, Ordering::SeqCst);
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(done.load(Ordering::SeqCst), 50);
}

#[tokio::test]
async fn a_lease_is_one_logins_alone_and_given_back_when_nobody_wants_it_any_more() {
    let (dir, vault) = opened();
    let other = Vault::open(&config(dir.path())).unwrap();
    let _held = lease(&vault, "a").await;
    let agent = Principal::Agent("x".into());
    drop(vault.lease("a", &agent).await.unwrap());
    drop(lease(&vault, "b").await);
    // Cancelled at many points while it is taken: it is never lost for longer than that takes.
    for micros in (0..40).map(|step| step * 50) {
        let taking = vault.lease("c", &Principal::Gate);
        drop(tokio::time::timeout(Duration::from_micros(micros), taking).await);
        let began = Instant::now();
        drop(lease(&other, "c").await);
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "cancelled after {micros} µs"
        );
    }
}

#[tokio::test]
async fn a_lease_that_is_over_is_taken_by_another() {
    let (dir, vault) = opened();
    drop(lease(&vault, "a").await);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let folder = leases(dir.path(), "a");
    let leave = |text: String| {
        let number = fs::read_dir(&folder)
            .unwrap()
            .filter_map(|of| of.unwrap().file_name().to_str()?.parse::<u64>().ok())
            .max();
        fs::write(folder.join((number.unwrap_or(0) + 1).to_string()), text).unwrap();
    };
    let waited = async || {
        let began = Instant::now();
        drop(lease(&vault, "a").await);
        began.elapsed()
    };
    let soon = Duration::from_millis(900);
    leave(format!("someone {} 30\n", unix_now() - 10));
    assert!(waited().await < soon, "its deadline is past");
    leave(format!("someone {} 30\n", unix_now() + 10_000_000));
    assert!(waited().await < soon, "a clock jumped");
    leave("someone 99999999999999 4294967295\n".into());
    leave(format!("someone {} 1\n", unix_now() + 3000));
    assert!(
        (2..6).contains(&waited().await.as_secs()),
        "watched for as long as it lasts"
    );
    leave("some".into());
    assert!(
        (3..8).contains(&waited().await.as_secs()),
        "not written to the end"
    );
    assert!(
        fs::read_dir(&folder).unwrap().count() <= 2,
        "lower numbers are removed"
    );
}

#[tokio::test]
async fn who_has_overstayed_gives_back_nothing_of_anothers() {
    let dir = tempfile::tempdir().unwrap();
    let config = OAuthConfig {
        lease: Duration::from_secs(1),
        ..config(dir.path())
    };
    let slow = Vault::open(&config).unwrap();
    let next = Vault::open(&config).unwrap();
    let overstayed = lease(&slow, "a").await;
    let held = lease(&next, "a").await;
    assert_eq!(overstayed.remaining(), Duration::ZERO);
    drop(overstayed);
    let third = tokio::time::timeout(
        Duration::from_millis(300),
        slow.lease("a", &Principal::Gate),
    )
    .await;
    assert!(third.is_err(), "it is still the second one's");
    drop(held);
    drop(lease(&slow, "a").await);
}

/// The work of a child process of a test, controlled by its environment.
#[test]
#[ignore = "is run by other tests, as a process of its own"]
fn as_another_process() {
    let Some(folder) = std::env::var_os("LYCHGATE_TEST_VAULT").map(PathBuf::from) else {
        panic!("run by other tests only");
    };
    let vault = Vault::open(&OAuthConfig {
        lease: Duration::from_secs(30),
        ..config(&folder)
    })
    .unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        match std::env::var("LYCHGATE_TEST_WORK").as_deref() {
            Ok("write") => {
                for at in 0_usize.. {
                    vault
                        .write(&account("a", &Principal::Gate, &at.to_string()))
                        .await
                        .unwrap();
                    println!("\nwritten {at}");
                }
            }
            Ok("lease") => hold_in_turn(&vault, &folder.join("mark"), 40).await,
            Ok("first") => vault
                .write(&gates(&std::process::id().to_string()))
                .await
                .unwrap(),
            other => panic!("{other:?}"),
        }
    });
}

fn start(folder: &Path, work: &str) -> Child {
    let test = format!(
        "{}::as_another_process",
        module_path!().split_once("::").unwrap().1
    );
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        &test,
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    command
        .env("LYCHGATE_TEST_VAULT", folder)
        .env("LYCHGATE_TEST_WORK", work);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs this many child processes at once, all of which must succeed.
fn run_together(count: usize, folder: &Path, work: &str) {
    let children: Vec<_> = (0..count).map(|_| start(folder, work)).collect();
    for child in children {
        let ended = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{errors}");
    }
}

#[tokio::test]
async fn a_writer_killed_at_any_moment_leaves_the_old_or_the_new() {
    let (dir, vault) = opened();
    vault
        .write(&account("a", &Principal::Gate, "0"))
        .await
        .unwrap();
    for round in 0..25_u64 {
        let mut child = start(dir.path(), "write");
        let told = format!("written {}", round % 5);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(
            lines.any(|line| line.unwrap() == told),
            "the writer came so far"
        );
        tokio::time::sleep(Duration::from_micros(round * 337)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        let read = read(&vault, "a").await.unwrap().unwrap();
        let access = read.granted.as_ref().unwrap().access.expose().to_owned();
        assert_eq!(read, account("a", &Principal::Gate, &access));
        assert!(
            access.parse::<u64>().unwrap() >= round % 5,
            "what was written is there: {access} in round {round}"
        );
    }
    let left = fs::read_dir(dir.path().join("vault")).unwrap().count();
    assert!(left <= 25 + 2, "each leaves one file at most: {left}");
}

#[test]
fn two_processes_never_hold_one_lease_at_once() {
    let dir = tempfile::tempdir().unwrap();
    run_together(3, dir.path(), "lease");
}

#[tokio::test]
async fn processes_that_make_the_key_at_once_agree_on_it() {
    let dir = tempfile::tempdir().unwrap();
    run_together(4, dir.path(), "first");
    let vault = Vault::open(&config(dir.path())).unwrap();
    let kept = vault.list().await.unwrap();
    assert_eq!((kept.accounts.len(), kept.faults.len()), (4, 0));
    let left = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect::<BTreeSet<_>>();
    assert_eq!(
        left,
        ["key".into(), "vault".into()].into(),
        "nothing half made is left"
    );
}
