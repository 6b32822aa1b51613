package com.shop.shaded.org.rocksdb;

/** The exception class of RocksDB in a relocated package. */
public final class RocksDBException extends Exception {
    public RocksDBException(String message) {
        super(message);
    }
}
