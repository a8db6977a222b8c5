//! Data files: parquet and JSON as rows, the choice of rows and columns, and tables to write.

pub mod agent_rows;
pub mod alpaca;
pub mod arrow_to_json;
pub mod column_selection;
pub mod conversations;
pub mod each_row;
pub mod ground_truth;
pub mod json_file;
pub mod json_to_arrow;
pub mod media;
pub mod missing_columns;
pub mod parquet_file;
pub mod row_selection;
pub mod rows;
pub mod table;
pub mod unread_columns;
