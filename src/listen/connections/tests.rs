use super::*;

const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const TWO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

fn table(
    connections: usize,
    unauthenticated: usize,
    per_address: Option<usize>,
) -> Arc<ConnectionTable> {
    ConnectionTable::for_agents(&Limits {
        connections,
        unauthenticated_connections: unauthenticated,
        connections_per_address: per_address,
        ..Limits::default()
    })
}

fn admit(table: &Arc<ConnectionTable>, from: IpAddr) -> (Connection, Option<&'static str>) {
    let admitted = table
        .admit(from, true)
        .unwrap_or_else(|limit| panic!("{limit}"));
    (admitted.connection, admitted.limit)
}

fn counts(table: &ConnectionTable) -> (usize, usize) {
    let open = table.connections.lock();
    assert_eq!(
        open.addresses
            .values()
            .map(|address| address.connections)
            .sum::<usize>(),
        open.total
    );
    (open.total, open.unauthenticated)
}

async fn is_evicted(connection: &Connection) -> bool {
    tokio::time::timeout(Duration::ZERO, connection.until_evicted())
        .await
        .is_ok()
}

#[tokio::test]
async fn an_unauthenticated_connection_of_the_busiest_address_makes_room() {
    let table = table(10, 3, None);
    let (first, _) = admit(&table, ONE);
    let (second, _) = admit(&table, ONE);
    let (other, limit) = admit(&table, TWO);
    assert_eq!(limit, None);
    let _request = first.open_request();
    let (_fourth, limit) = admit(&table, TWO);
    assert_eq!(limit, Some("unauthenticated_connections"));
    assert!(is_evicted(&second).await, "without an open request");
    assert!(!is_evicted(&first).await && !is_evicted(&other).await);
    // An evicted connection is counted once, whatever happens on it before it ends.
    second.set_authenticated();
    assert_eq!(counts(&table), (3, 3));
    drop(second);
    assert_eq!(counts(&table), (3, 3));
}

#[tokio::test]
async fn authenticated_connections_have_places_that_others_cannot_take() {
    let table = table(4, 2, None);
    let authenticated: Vec<Connection> = (0..3)
        .map(|_| admit(&table, ONE).0)
        .inspect(Connection::set_authenticated)
        .collect();
    assert_eq!(counts(&table), (3, 0));
    let (silent, limit) = admit(&table, TWO);
    assert_eq!(limit, None);
    let (_newer, limit) = admit(&table, TWO);
    assert_eq!(limit, Some("connections"));
    assert!(is_evicted(&silent).await);
    for connection in &authenticated {
        assert!(!is_evicted(connection).await);
    }
    _newer.set_authenticated();
    assert_eq!(table.admit(ONE, true).err(), Some("connections"));
    drop(authenticated);
    assert!(table.admit(ONE, true).is_ok());
}

#[test]
fn each_address_has_a_limit_and_loopback_only_where_it_is_set() {
    let of = |per_address| table(5000, 5000, per_address);
    let held = |table: &Arc<ConnectionTable>, from: IpAddr| {
        let mut held = Vec::new();
        while held.len() < 2000 {
            match table.admit(from, false) {
                Ok(admitted) => held.push(admitted.connection),
                Err(limit) => {
                    assert_eq!(limit, "connections_per_address");
                    break;
                }
            }
        }
        assert!(table.admit(TWO, false).is_ok(), "another address");
        held.len()
    };
    let loopback: IpAddr = "127.0.0.1".parse().unwrap();
    assert_eq!(held(&of(None), ONE), 1024);
    assert_eq!(held(&of(None), loopback), 2000);
    assert_eq!(held(&of(Some(7)), ONE), 7);
    assert_eq!(held(&of(Some(7)), loopback), 7);
    assert_eq!(held(&of(None), "::ffff:127.0.0.1".parse().unwrap()), 2000);
}

#[test]
fn a_network_of_64_bits_is_one_address() {
    let same = |one: &str, other: &str| {
        limit_key(one.parse().unwrap()) == limit_key(other.parse().unwrap())
    };
    assert!(same("2001:db8::1", "2001:db8::ffff:1"));
    assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
    assert!(same("::ffff:192.0.2.1", "192.0.2.1"));
    assert!(!same("192.0.2.1", "192.0.2.2") && !same("::1", "::2"));
}
