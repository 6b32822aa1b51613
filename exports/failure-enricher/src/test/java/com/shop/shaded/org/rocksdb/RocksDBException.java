package com.shop.shaded.org.rocksdb;

/** What relocation makes of RocksDB's class. */
public final class RocksDBException extends Exception {
    public RocksDBException(String message) {
        super(message);
    }
}
