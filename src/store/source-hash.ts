/**
 * Where the filter `source_id` searches: stream rows have a hash of `source.id` instead of its 50 characters and more,
 * which stand in their text anyway.
 */
import { crc32 } from 'node:zlib';

/** @returns a signed integer of 32 bits, which SQLite stores in four bytes; null: no id */
export function hashOfSource(id: string): number;
export function hashOfSource(id: string | null): number | null;
export function hashOfSource(id: string | null): number | null {
  return id === null ? null : crc32(id) | 0;
}
