/**
 * The filter `source_id` searches a hash of `source.id` in the rows of a stream: the id itself, often over 50
 * characters, is stored once, in the text of the detection.
 */
import { crc32 } from 'node:zlib';

/** @returns a signed integer of 32 bits, which SQLite stores in four bytes; null: no id */
export function hashOfSource(id: string): number;
export function hashOfSource(id: string | null): number | null;
export function hashOfSource(id: string | null): number | null {
  return id === null ? null : crc32(id) | 0;
}
