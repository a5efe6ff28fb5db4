//! Measures the time to judge a call: `cargo bench --manifest-path tests/bench/calls/Cargo.toml`.

#[path = "../src/calls.rs"]
mod calls;
#[path = "../src/judge.rs"]
mod judge;

use divan::Bencher;
use judge::Judge;

fn main() {
    divan::main();
}

#[divan::bench(args = 0..calls::ordinary().len())]
fn ordinary(bencher: Bencher<'_, '_>, at: usize) {
    bench(bencher, &calls::ordinary()[at]);
}

#[divan::bench(args = 0..calls::hostile().len(), sample_count = 10)]
fn hostile(bencher: Bencher<'_, '_>, at: usize) {
    bench(bencher, &calls::hostile()[at]);
}

fn bench(bencher: Bencher<'_, '_>, (_, command): &(&str, String)) {
    let judge = Judge::new();
    let call = Judge::call(command);
    bencher.bench(|| judge.refuses(&call));
}
