//! `trainer devices`: the devices to compute on.

use clap::Args;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde_json::{Value, json};

use super::error::CliError;
use super::json::{JsonArg, print_rows};
use super::print::print;
use burnish_model::devices::{DeviceInfo, FoundDevice, list};
use burnish_util::machine::amount;

#[derive(Args)]
pub(crate) struct DevicesArgs {
    #[command(flatten)]
    json: JsonArg,
}

/// Prints a line for each device of this machine, and for each backend that finds no device or was not built in.
pub(super) fn run(args: &DevicesArgs) -> Result<(), CliError> {
    if args.json.json {
        return print_rows(list().iter().map(object));
    }
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(["DEVICE", "IS", "FLOAT32", "BFLOAT16", "FLOAT16", "MEMORY", ""]);
    table.add_rows(list().into_iter().map(cells));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    print(&table.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>())
}

/// Returns the row of an entry. Its `device` is the name in `trainer.device`, if it is usable, and else the backend's.
fn object(entry: &DeviceInfo) -> Value {
    let lacking = |name: &str, note: String| {
        let nothing = Value::Null;
        json!({
            "device": name, "usable": false, "adapter": nothing, "float32": nothing, "bfloat16": nothing, "float16": nothing,
            "memory": nothing, "software": nothing, "note": note,
        })
    };
    match entry {
        DeviceInfo::Device(found) => json!({
            "device": found.name, "usable": true, "adapter": found.adapter, "float32": found.float32, "bfloat16": found.bfloat16,
            "float16": found.float16, "memory": found.memory, "software": found.software, "note": null,
        }),
        DeviceInfo::Unopened { name, why } => lacking(name, format!("cannot be opened: {why}")),
        DeviceInfo::NoGpu(interface) => lacking(interface, "finds no GPU".to_owned()),
        DeviceInfo::NotBuiltIn(interface) => lacking(interface, "not built in".to_owned()),
    }
}

fn cells(entry: DeviceInfo) -> [String; 7] {
    let lacking = |name: &str, note: String| [name, "-", "-", "-", "-", "-", &note].map(str::to_owned);
    match entry {
        DeviceInfo::Device(found) => cells_of(found),
        DeviceInfo::Unopened { name, why } => lacking(&name, format!("cannot be opened: {why}")),
        DeviceInfo::NoGpu(interface) => lacking(interface, "finds no GPU".to_owned()),
        DeviceInfo::NotBuiltIn(interface) => lacking(interface, format!("not built in: build with --features {interface}")),
    }
}

fn cells_of(found: FoundDevice) -> [String; 7] {
    let yes = |computes: bool| if computes { "yes" } else { "no" }.to_owned();
    let memory = found.memory.map_or_else(|| "-".to_owned(), |bytes| amount(u128::from(bytes)));
    let note = if found.software { "software, not a GPU: slow" } else { "" };
    let formats = [found.float32, found.bfloat16, found.float16].map(yes);
    let [float32, bfloat16, float16] = formats;
    [found.name, found.adapter, float32, bfloat16, float16, memory, note.to_owned()]
}
