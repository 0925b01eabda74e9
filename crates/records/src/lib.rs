//! Record batches v2: header, checksum, iteration, building, compression.
