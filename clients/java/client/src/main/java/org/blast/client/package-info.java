/** A client of Blast's controller. */
package org.blast.client;
