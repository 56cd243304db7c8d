/**
 * The schema of a database: its tables, and the numbers by which its file is recognized. There are no migrations: a
 * database with a log is rebuilt from it with the tables of this program; others start empty, or are refused.
 */
import { crc32 } from 'node:zlib';
import { Refused } from '../refused.ts';

export interface Schema {
  /** Identifies the program and the kind of database: https://sqlite.org/pragma.html#pragma_application_id */
  readonly application_id: number;
  /** All of its tables. */
  readonly sql: string;
  /** NORMAL if a commit need not survive a power cut, for example because a log has it already. */
  readonly synchronous: 'FULL' | 'NORMAL';
}

export class UnknownSchema extends Refused {}

/** The `user_version` of a schema: any change to its text gives another one. */
export function schemaVersion({ sql }: Schema): number {
  return crc32(sql) % 0x7fffffff;
}
