/** The subscriptions of accounts, to which detections belong. Changes apply to the next request. */
import { Type } from '@sinclair/typebox';
import {
  addSubscription,
  getSubscription,
  listSubscriptions,
  setSubscription,
  subscriptionDocument,
} from '../auth/subscriptions.ts';
import { read, readName } from '../config/option-values.ts';
import { listText } from '../text-layout.ts';
import { required, value } from './member.ts';
import { NEW_SUBSCRIPTION, SUBSCRIPTION, SUBSCRIPTION_MEMBERS, TYPES_HINT, ZONE_HINT } from './members.ts';
import { act, reading, requireChange } from './operation.ts';

const { account, time_zone, content_types } = SUBSCRIPTION_MEMBERS;
const ID = required(SUBSCRIPTION_MEMBERS.id);

export const SUBSCRIPTIONS = [
  act('subscription add', {
    summary: 'add a subscription to an account',
    members: NEW_SUBSCRIPTION,
    result: SUBSCRIPTION,
    examples: [
      'subscription add 7001 --account acme',
      'subscription add 7002 --account acme --name Photos --time-zone Europe/Berlin --content-types image',
    ],
    creates: true,
    form: {
      label: 'Add a subscription',
      will: 'Rows of exports with this number belong to the account from now on.',
    },
    run(context, { id, account: account_id, ...terms }) {
      const added = { id, account_id, ...terms };
      const subscription = context.change((db) => addSubscription(db, added, context.nowMs));
      return {
        value: subscriptionDocument(subscription),
        done: `Added subscription ${id}.`,
        next: [
          `Next: wirewatch key create --account ${account_id} --name NAME --scopes detections:read --subscriptions ${id}`,
        ],
      };
    },
  }),
  reading('subscription list', {
    summary: 'list all subscriptions',
    result: Type.Array(SUBSCRIPTION),
    examples: ['subscription list', 'subscription list --json'],
    run: ({ access }) => ({ value: listSubscriptions(access()).map(subscriptionDocument) }),
    text: listText(
      'There are no subscriptions yet. Add one with: wirewatch subscription add ID --account ACCOUNT',
    ),
  }),
  reading('subscription show', {
    summary: 'show one subscription',
    members: { id: ID },
    result: SUBSCRIPTION,
    examples: ['subscription show 7001'],
    run: ({ access }, { id }) => ({ value: subscriptionDocument(getSubscription(access(), id)) }),
  }),
  act('subscription set', {
    summary: 'change a subscription. Values that you do not give stay unchanged',
    members: {
      id: ID,
      account: {
        ...account,
        hint: 'account of the subscription, as a check; a subscription cannot move to another account',
      },
      name: value((text) => (text.trim() === '' ? read<string | null>(null) : readName(text)), {
        hint: 'display name, or "" for none',
        placeholder: 'name',
        none: '',
      }),
      time_zone: { ...time_zone, hint: ZONE_HINT },
      content_types: { ...content_types, hint: TYPES_HINT },
    },
    result: SUBSCRIPTION,
    examples: ['subscription set 7001 --time-zone Europe/London'],
    form: {
      label: 'Change',
      title: 'Change subscription',
      will: 'The changes apply from the next request on.',
      fields: ['name', 'time_zone', 'content_types'],
    },
    run(context, { id, account: account_id, ...given }) {
      const changes = { account_id, ...given };
      requireChange('subscription set', changes);
      const subscription = context.change((db) => setSubscription(db, id, changes));
      return { value: subscriptionDocument(subscription), done: `Changed subscription ${id}.` };
    },
  }),
];
