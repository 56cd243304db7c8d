/** Smaller buffers may share their memory with others, and cost the collector nothing. */
const RELEASED_BYTES_MIN = 65_536;

/**
 * Frees the memory of a buffer that nobody uses any longer. A page of the stream has up to a megabyte: left to the garbage
 * collector, it makes that run after every few dozen pages, and the next page is read into memory that no cache holds.
 */
export function releaseMemory({ buffer, byteLength }: Buffer): void {
  if (byteLength >= RELEASED_BYTES_MIN && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
