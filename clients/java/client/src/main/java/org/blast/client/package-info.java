/**
 * A client of Blast's controller: {@link org.blast.client.BlastClient}, made by its builder. What travels, and what the
 * controller answers with, is in {@link org.blast}, written by Thrift from the interface's description.
 */
package org.blast.client;
