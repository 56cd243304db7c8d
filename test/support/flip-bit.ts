/** Damages a file by one bit. */
import { readFileSync, writeFileSync } from 'node:fs';

/** @param at the byte; from the end if it is negative, in the middle by default */
export function flipBit(path: string, at?: number): void {
  const bytes = readFileSync(path);
  const found = (at ?? bytes.length >> 1) + (at !== undefined && at < 0 ? bytes.length : 0);
  bytes.writeUInt8(bytes.readUInt8(found) ^ 4, found);
  writeFileSync(path, bytes);
}
