//! Any text at all, as a lock file of pins: refused with faults that have a place, or written back so that it reads the same.

use lychgate::pins::Lock;

pub fn fuzz(input: &str) {
    match Lock::read("fuzzed", input) {
        Ok(lock) => {
            let written = lock.written();
            let again = Lock::read("fuzzed", &written).expect("what is written reads");
            assert_eq!(again.written(), written);
        }
        Err(faults) => assert!(faults.iter().all(|fault| fault.line > 0)),
    }
}
