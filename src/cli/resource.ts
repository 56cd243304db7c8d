/** What `account`, `subscription` and `key` have in common: how an entry is printed, and the commands `list` and `show`. */
import type { Command } from 'commander';
import type { Database } from '../store/database.ts';
import { withAccess } from './access.ts';
import { entryResult, listResult, type Result, subcommand, type TypedArgument } from './command.ts';
import type { Column } from './output.ts';

interface Resource<Id, Entry, Document> {
  /** `account`, as the command is named. */
  readonly noun: string;
  readonly id: TypedArgument<{ id: Id }>;
  readonly exampleId: string;
  readonly columns: readonly Column<Document>[];
  /** The columns of a list, if it has no room for all. */
  readonly listColumns?: readonly Column<Document>[];
  /** Called when the command already acts as the owner of the data folder. @returns what `--json` prints of an entry */
  readonly documents: (command: Command) => (entry: Entry) => Document;
  readonly all: (access: Database) => readonly Entry[];
  readonly get: (access: Database, id: Id) => Entry;
  /** Printed if there are none. */
  readonly none: string;
  /** What the help of `show` adds. */
  readonly showNote?: string;
}

export function resourceCommands<Id, Entry, Document>(resource: Resource<Id, Entry, Document>) {
  const { noun, columns, listColumns = columns, documents } = resource;
  /** An entry, between what was done and what comes next. */
  const shown = (command: Command, entry: Entry, done?: string, ...next: (string | false)[]): Result =>
    entryResult(documents(command)(entry), columns, done, ...next);
  /** The entry that a change of the database returns. */
  const changed = (
    command: Command,
    change: (access: Database) => Entry,
    done?: string,
    next?: string | false,
  ) => shown(command, withAccess(command, change), done, next ?? false);
  return {
    shown,
    changed,
    list: subcommand('list', `list all ${noun}s`, {
      examples: [`${noun} list`, `${noun} list --json`],
      run(_values, self) {
        const entries = withAccess(self, resource.all);
        return listResult(entries.map(documents(self)), listColumns, resource.none);
      },
    }),
    show: subcommand('show', `show one ${noun}${resource.showNote ?? ''}`, {
      arguments: [resource.id],
      examples: [`${noun} show ${resource.exampleId}`],
      run: ({ id }, self) => changed(self, (db) => resource.get(db, id)),
    }),
  };
}
