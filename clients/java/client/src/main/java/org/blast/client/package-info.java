/**
 * A client of Blast's controller: {@link org.blast.client.BlastClient}, created by its builder. Thrift generates the
 * structs and exceptions of the interface in {@link org.blast}.
 */
package org.blast.client;
