/**
 * Changes of small tables, as lines of the log: whichever statement changes a row, a trigger notes the new row. So no
 * code can forget the log, and applying the log repeats exactly what was done.
 *
 * | line | meaning |
 * |---|---|
 * | `{"put":"delivery","row":{…}}` | the row with this primary key has these values |
 * | `{"delete":"delivery","row":{…}}` | there is no row with this primary key |
 *
 * Values are as in the table. The triggers are temporary, so they exist on one connection alone
 * (https://sqlite.org/lang_createtrigger.html): applying a log on another one notes nothing.
 */
import { getOrMake } from '../get-or-make.ts';
import { isObject } from '../is-object.ts';
import type { Database, Statement } from '../store/database.ts';
import { LogDamage } from '../store/log-errors.ts';

/**
 * @param tables tables of the main database, each with a primary key
 * @returns takes what the connection changed since it was last called: lines as one text, empty if nothing did. Call it within
 *   the transaction
 */
export function noteEffects(db: Database, tables: readonly string[]) {
  db.exec('CREATE TEMP TABLE effect (number INTEGER PRIMARY KEY, line TEXT NOT NULL)');
  for (const table of tables) {
    const { columns, keys } = columnsOf(db, table);
    const note = (event: string, line: string) =>
      `CREATE TEMP TRIGGER effect_of_${event.toLowerCase()}_on_${table} AFTER ${event} ON main.${table}
       BEGIN INSERT INTO effect (line) VALUES (${line}); END`;
    const put = `json_object('put', '${table}', 'row', ${rowOf('NEW', columns)})`;
    db.exec(note('INSERT', put));
    db.exec(note('UPDATE', put));
    db.exec(note('DELETE', `json_object('delete', '${table}', 'row', ${rowOf('OLD', keys)})`));
  }
  const select = db.prepare<[], string>('SELECT line FROM temp.effect ORDER BY number').pluck();
  const clear = db.prepare('DELETE FROM temp.effect');
  return (): string => {
    const lines = select.all().map((line) => `${line}\n`);
    if (lines.length > 0) clear.run();
    return lines.join('');
  };
}

/** The rows of a table, as lines without newlines. Nothing may be written while they are read. */
export function* effectsOfRows(db: Database, table: string): Generator<string> {
  const { columns, keys } = columnsOf(db, table);
  const line = `json_object('put', '${table}', 'row', ${rowOf(table, columns)})`;
  yield* db.prepare<[], string>(`SELECT ${line} FROM ${table} ORDER BY ${keys.join()}`).pluck().iterate();
}

const rowOf = (row: string, columns: readonly string[]): string =>
  `json_object(${columns.map((name) => `'${name}', ${row}.${name}`).join(', ')})`;

/** The columns of a table in their order, and those of its primary key. */
export function columnsOf(db: Database, table: string) {
  type Column = { readonly name: string; readonly pk: number };
  const select = db.prepare<[string], Column>('SELECT name, pk FROM pragma_table_info(?) ORDER BY cid');
  const all = select.all(table);
  return { columns: all.map(({ name }) => name), keys: all.flatMap(({ name, pk }) => (pk > 0 ? name : [])) };
}

/** @returns applies a line; it returns false if that is of another kind, and throws LogDamage for unknown tables or columns */
export function effectApplier(db: Database, tables: readonly string[]) {
  const statements = new Map<string, Statement>();
  return (line: Readonly<Record<string, unknown>>): boolean => {
    const table = line.put ?? line.delete;
    if (typeof table !== 'string') return false;
    const { row } = line;
    if (!tables.includes(table) || !isObject(row))
      throw new LogDamage(`a line changes the unknown table ${table}`);
    const names = Object.keys(row);
    const key = `${line.put === undefined ? 'delete' : 'put'} ${table} ${names.join()}`;
    const statement = getOrMake(statements, key, () => {
      const { columns, keys } = columnsOf(db, table);
      const unknown = names.find((name) => !columns.includes(name));
      if (unknown !== undefined) throw new LogDamage(`a line sets the unknown column ${table}.${unknown}`);
      return db.prepare(line.put === undefined ? deleteSql(table, names) : putSql(table, names, keys));
    });
    statement.run(row);
    return true;
  };
}

function putSql(table: string, names: readonly string[], keys: readonly string[]): string {
  const others = names.filter((name) => !keys.includes(name)).map((name) => `${name} = excluded.${name}`);
  const update = others.length === 0 ? 'NOTHING' : `UPDATE SET ${others.join(', ')}`;
  return `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((name) => `:${name}`).join(', ')})
    ON CONFLICT (${keys.join(', ')}) DO ${update}`;
}

const deleteSql = (table: string, keys: readonly string[]): string =>
  `DELETE FROM ${table} WHERE ${keys.map((name) => `${name} = :${name}`).join(' AND ')}`;
