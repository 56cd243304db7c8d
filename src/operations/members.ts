/**
 * The members of accounts, subscriptions and keys: what commands, requests, forms and the configuration give them. A new
 * one is described here, and stored in auth/.
 */
import { Type } from '@sinclair/typebox';
import { SCOPES } from '../auth/scopes.ts';
import {
  readAccountId,
  readAddresses,
  readContentTypes,
  readDailyRows,
  readExpires,
  readKeySubscriptions,
  readName,
  readScopes,
  readSubscriptionId,
  readSwitch,
  readZone,
} from '../config/option-values.ts';
import { CONTENT_TYPES } from '../detection/content-type.ts';
import { hinted, list, value } from './member.ts';

const ROWS_OR_NULL = Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]);
export const TIME = Type.String({ format: 'date-time' });
const TIME_OR_NULL = Type.Union([TIME, Type.Null()]);
const TEXT_OR_NULL = Type.Union([Type.String(), Type.Null()]);
const CONTENT_TYPE = Type.Union(CONTENT_TYPES.map((type) => Type.Literal(type)));
export const ZONE_HINT = 'IANA time zone of periods that clients give as dates';
export const TYPES_HINT = 'content types: text, image or text,image';

export const ACCOUNT_MEMBERS = {
  id: value(readAccountId, { hint: 'account id', placeholder: 'id' }),
  name: value(readName, { hint: 'name of the customer', placeholder: 'name' }),
  daily_rows: value(readDailyRows, {
    hint: 'daily row allowance, or none to use the setting [limits] daily_rows',
    placeholder: 'number',
    schema: ROWS_OR_NULL,
  }),
  print_metadata: value(readSwitch, {
    hint: 'whether the account is licensed for print-publisher metadata',
    placeholder: 'on|off',
    schema: Type.Boolean(),
  }),
};

export const SUBSCRIPTION_MEMBERS = {
  id: value(readSubscriptionId, {
    hint: 'subscription id: a number, as in the exports',
    placeholder: 'id',
    schema: Type.Integer({ minimum: 1 }),
  }),
  account: hinted(ACCOUNT_MEMBERS.id, 'account that the subscription belongs to'),
  name: value(readName, { hint: 'display name', placeholder: 'name' }),
  time_zone: value(readZone, { hint: `${ZONE_HINT} (default: UTC)`, placeholder: 'zone' }),
  content_types: list(readContentTypes, {
    hint: `${TYPES_HINT} (default: text,image)`,
    placeholder: 'types',
    schema: Type.Array(CONTENT_TYPE),
  }),
};

export const KEY_MEMBERS = {
  account: hinted(ACCOUNT_MEMBERS.id, 'account that the key belongs to'),
  name: value(readName, { hint: 'name of the key', placeholder: 'name' }),
  scopes: list(readScopes, {
    hint: 'comma-separated scopes: detections:read (reports:read and exports:create are accepted, but no endpoint uses them yet)',
    placeholder: 'scopes',
    schema: Type.Array(Type.Union(SCOPES.map((scope) => Type.Literal(scope)))),
  }),
  subscriptions: list(readKeySubscriptions, {
    hint: 'subscriptions that the key may read, such as 7001,7002:text. Without a type, every content type the subscription has at the time',
    schema: Type.Array(Type.Union([Type.Integer(), Type.String()])),
  }),
  expires: value(readExpires, {
    hint: 'when the key expires, such as 2027-01-01T00:00:00Z, or none',
    placeholder: 'time',
    schema: TIME_OR_NULL,
  }),
  allow_address: list(readAddresses, {
    hint: 'address or network that may use the key, or none for any; repeatable',
    placeholder: 'cidr',
    several: 'repeated',
  }),
  daily_rows: value(readDailyRows, {
    hint: 'daily row allowance of the key itself, or none',
    placeholder: 'number',
    schema: ROWS_OR_NULL,
  }),
};

export const ACCOUNT = Type.Object({
  id: Type.String(),
  name: Type.String(),
  daily_rows: ROWS_OR_NULL,
  print_metadata: Type.Boolean(),
  status: Type.Union([Type.Literal('active'), Type.Literal('suspended')]),
  suspended_at: TIME_OR_NULL,
  created_at: TIME,
});
export const SUBSCRIPTION = Type.Object({
  id: Type.Integer(),
  account: Type.String(),
  name: TEXT_OR_NULL,
  time_zone: Type.String(),
  content_types: Type.Array(CONTENT_TYPE),
  created_at: TIME,
});
export const KEY = Type.Object({
  id: Type.String(),
  name: Type.String(),
  account: Type.String(),
  scopes: Type.Array(Type.String()),
  subscriptions: Type.Array(
    Type.Object({ id: Type.Integer(), content_types: Type.Union([Type.Array(CONTENT_TYPE), Type.Null()]) }),
  ),
  expires_at: TIME_OR_NULL,
  status: Type.Union([Type.Literal('active'), Type.Literal('expired'), Type.Literal('revoked')]),
  revoked_at: TIME_OR_NULL,
  allow_addresses: Type.Array(Type.String()),
  daily_rows: ROWS_OR_NULL,
  created_at: TIME,
  last_used_at: TIME_OR_NULL,
  rows_today: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Null where the count is not known.',
  }),
});
export const NEW_KEY = Type.Composite([KEY, Type.Object({ key: Type.String() })]);
