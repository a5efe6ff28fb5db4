//! Reads any text as a lock file of pins: it is either refused with faults that have a line, or
//! written back in a form that reads the same.

use lychgate::pins::Lock;

pub fn fuzz(input: &str) {
    match Lock::read("fuzzed", input) {
        Ok(lock) => {
            let written = lock.to_text();
            let again = Lock::read("fuzzed", &written).expect("what is written reads");
            assert_eq!(again.to_text(), written);
        }
        Err(faults) => assert!(faults.iter().all(|fault| fault.line > 0)),
    }
}
