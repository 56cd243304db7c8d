/** Accounts: the customers of this installation. `db` is a writer on access.db; `nowMs` is epoch milliseconds. */
import { failed } from '../refused.ts';
import { type Database, documents, jsonMembers, writing } from '../store/database.ts';
import { formatMs } from '../time.ts';

export interface Account {
  readonly id: string;
  readonly name: string;
  /** Null: the setting `[limits] daily_rows`. */
  readonly daily_rows: number | null;
  /** Licensed for print-publisher metadata. */
  readonly print_metadata: boolean;
  readonly suspended_at: number | null;
  /** Distinguishes it from an earlier account with this id. */
  readonly created_at: number;
}

/** Absent and undefined members stay as they are. */
export type Changes<Of> = { readonly [Member in keyof Of]?: Of[Member] | undefined };
/** Absent members get their default. */
export type NewAccount = Pick<Account, 'id' | 'name'> &
  Changes<Pick<Account, 'daily_rows' | 'print_metadata'>>;

const ACCOUNT = `json_object(${jsonMembers('id', 'name', 'daily_rows', 'suspended_at', 'created_at')},
  'print_metadata', json(iif(print_metadata, 'true', 'false')))`;
const SELECT_ACCOUNTS = `SELECT ${ACCOUNT} FROM account ORDER BY id`;
const SELECT_ACCOUNT = `SELECT ${ACCOUNT} FROM account WHERE id = :id`;
const INSERT_ACCOUNT = `
  INSERT INTO account (id, name, daily_rows, print_metadata, created_at)
  VALUES (:id, :name, :daily_rows, :print_metadata, :created_at)`;
const UPDATE_ACCOUNT = `
  UPDATE account SET name = :name, daily_rows = :daily_rows, print_metadata = :print_metadata,
    suspended_at = :suspended_at
  WHERE id = :id`;

/** @throws Refused `failed` if the id exists */
export const addAccount = (db: Database, account: NewAccount, nowMs: number): Account =>
  writing(db, () => {
    const { id, name, daily_rows = null, print_metadata = false } = account;
    if (findAccount(db, id) !== null)
      throw failed(`account ${id} already exists. To change it, run: wirewatch account set ${id}`);
    const terms = { name, daily_rows, print_metadata: Number(print_metadata) };
    db.prepare(INSERT_ACCOUNT).run({ id, ...terms, created_at: nowMs });
    return getAccount(db, id);
  });

export const listAccounts = (db: Database) => documents<Account>(db, SELECT_ACCOUNTS);

export const findAccount = (db: Database, id: string): Account | null =>
  documents<Account>(db, SELECT_ACCOUNT, { id })[0] ?? null;

/** @throws Refused `failed` if it does not exist */
export function getAccount(db: Database, id: string): Account {
  const account = findAccount(db, id);
  if (account !== null) return account;
  throw failed(
    `account ${id} does not exist. To add it, run: wirewatch account add ${id} --name NAME. To list accounts, run: wirewatch account list`,
  );
}

export const setAccount = (db: Database, id: string, changes: Changes<Omit<Account, 'id' | 'created_at'>>) =>
  writing(db, () => {
    const account = changed(getAccount(db, id), changes);
    db.prepare(UPDATE_ACCOUNT).run({ ...account, print_metadata: Number(account.print_metadata) });
    return account;
  });

export function changed<Of extends object>(found: Of, changes: Changes<NoInfer<Of>>): Of {
  const defined = Object.entries(changes).filter(([, value]) => value !== undefined);
  return { ...found, ...Object.fromEntries(defined) };
}

/** Stops all keys of the account at once; the time of an earlier suspension stays. */
export const suspendAccount = (db: Database, id: string, nowMs: number): Account =>
  writing(db, () => {
    const account = getAccount(db, id);
    return account.suspended_at === null ? setAccount(db, id, { suspended_at: nowMs }) : account;
  });

export const resumeAccount = (db: Database, id: string) => setAccount(db, id, { suspended_at: null });

/** An account as `--json` prints it. */
export function accountDocument({ suspended_at, created_at, ...account }: Account) {
  return {
    ...account,
    status: suspended_at === null ? ('active' as const) : ('suspended' as const),
    suspended_at: suspended_at === null ? null : formatMs(suspended_at),
    created_at: formatMs(created_at),
  };
}
