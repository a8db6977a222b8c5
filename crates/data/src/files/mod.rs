//! Data files: parquet and JSON as rows, the choice of rows and columns, and tables to write.

pub(crate) mod agent_rows;
pub(crate) mod alpaca;
pub(crate) mod arrow_to_json;
pub(crate) mod column_selection;
pub(crate) mod conversations;
mod csv_file;
pub(crate) mod each_row;
pub(crate) mod ground_truth;
pub(crate) mod json_file;
pub(crate) mod json_to_arrow;
pub mod media;
pub(crate) mod missing_columns;
pub(crate) mod parquet_file;
pub(crate) mod row_selection;
pub mod rows;
pub mod table;
pub(crate) mod unread_columns;
pub(crate) mod write_rows;
