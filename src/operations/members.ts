/**
 * The members of accounts, subscriptions and keys: what commands, requests, forms and the configuration give them. A new
 * one is described here, and stored in auth/.
 */
import { Type } from '@sinclair/typebox';
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
const TIME_OR_NULL = Type.Union([Type.String({ format: 'date-time' }), Type.Null()]);
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
    schema: Type.Array(Type.Union(CONTENT_TYPES.map((type) => Type.Literal(type)))),
  }),
};

export const KEY_MEMBERS = {
  account: hinted(ACCOUNT_MEMBERS.id, 'account that the key belongs to'),
  name: value(readName, { hint: 'name of the key', placeholder: 'name' }),
  scopes: list(readScopes, {
    hint: 'comma-separated scopes: detections:read (reports:read and exports:create are accepted, but no endpoint uses them yet)',
    placeholder: 'scopes',
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
