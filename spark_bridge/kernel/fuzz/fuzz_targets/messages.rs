//! Messages of canal-json as events: a message is read or refused, and adds whole rows or none.
//!
//! `canal-json.json` has what the bridge gives the kernel for one table of the golden messages:
//! settings, a plan, and the message that the plan was made for.
#![no_main]

use std::cell::RefCell;

use cdcfmt_kernel::testing::{Kernel, Place};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

thread_local! {
    static KERNEL: RefCell<Kernel> = RefCell::new(open());
}

fn open() -> Kernel {
    let text = include_str!("../canal-json.json");
    let mut given: Value = serde_json::from_str(text).expect("the file is JSON");
    let mut take = |name: &str| given[name].take();
    let settings = serde_json::from_value(take("settings")).expect("settings of a kernel");
    let plan = serde_json::from_value(take("plan")).expect("a plan");
    let message = take("message");
    let message = message.as_str().expect("a message").as_bytes();
    let mut kernel = Kernel::new(settings);
    kernel
        .add_plan(message, None, plan)
        .expect("the message has a schema key");
    kernel
        .read(message, None, Place::default(), 0)
        .expect("the message fits its own plan");
    kernel.finish().expect("columns of one length");
    kernel
}

fuzz_target!(|message: &[u8]| {
    KERNEL.with_borrow_mut(|kernel| {
        let is_read = kernel.read(message, None, Place::default(), 0).is_ok();
        let count = kernel.row_count();
        assert!(is_read || count == 0, "a refused message left rows");
        kernel.finish().expect("columns of one length");
    });
});
