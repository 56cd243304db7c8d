/**
 * What a database's file is: whose, and with which tables. There are no migrations: what the log is the history of is
 * made anew from it with the tables of this program, and the rest begins anew or is refused.
 */
import { crc32 } from 'node:zlib';
import { Refused } from '../refused.ts';
import type { Database } from './database.ts';

export interface Schema {
  /** SQLite's number for whose file it is. */
  readonly application_id: number;
  /** All of its tables. */
  readonly sql: string;
  /** NORMAL if a commit need not survive a power cut, for example because a log has it already. */
  readonly synchronous: 'FULL' | 'NORMAL';
}

/** A database of this program with other tables than those that it knows. */
export class UnknownSchema extends Refused {}

/** What `user_version` says of a schema: any change to its text is another one. */
export function schemaVersion({ sql }: Schema): number {
  return crc32(sql) % 0x7fffffff;
}

/** Makes the tables of a database that is new. */
export function makeSchema(db: Database, schema: Schema): void {
  db.transaction(() => {
    db.exec(schema.sql);
    db.pragma(`application_id = ${schema.application_id}`);
    db.pragma(`user_version = ${schemaVersion(schema)}`);
  }).immediate();
}

/**
 * @throws UnknownSchema where the tables are other ones; Refused `configuration` where it is no database of this kind
 */
export function requireSchema(db: Database, path: string, schema: Schema): void {
  const applicationId = Number(db.pragma('application_id', { simple: true }));
  if (applicationId !== schema.application_id)
    throw new Refused(
      'configuration',
      `${path} is not a Wirewatch database, or was created by a version before the first release. Name another data folder with --data.`,
    );
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version !== schemaVersion(schema))
    throw new UnknownSchema('configuration', `${path} was created by another version of Wirewatch.`);
}
