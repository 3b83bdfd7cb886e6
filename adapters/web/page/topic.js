/* SPDX-License-Identifier: MIT */

/* A topic: its jobs by state, its groups, its options. */

const TOTALS = ['added', 'done', 'retried', 'failed', 'expired', 'crashed',
  'dropped', 'lost'];

/* A moment that a reader put into a field, in the reader's zone. */
const momentOf = (text) => text ? new Date(text).getTime() : undefined;

const jobColumns = {
  id: {name: 'Id', cls: 'name', bare: true, cell: (job) =>
    h('a', {href: jobLink(job.topic, job.id)}, foreign(job.id, 'id'))},
  group: {name: 'Group', cell: (job) => foreign(job.group || '', 'id')},
  due: {name: 'Due', cell: (job) => timeNode(job.due_ms)},
  died: {name: 'Died', cell: (job) => timeNode(job.due_ms)},
  worker: {name: 'Worker', cell: (job) => job.worker &&
    h('a', {href: workerLink(job.worker)}, foreign(job.worker, 'id'))},
  since: {name: 'Claimed', cell: (job) =>
    job.claimed_ms > 0 && timeNode(job.claimed_ms)},
  attempt: {name: 'Attempt', cls: 'num', cell: (job) => String(job.attempt)},
  why: {name: 'Reason', cls: 'text', cell: (job) =>
    [job.reason && h('b', {}, visible(job.reason)), job.reason && job.error &&
      ': ', job.error && foreign(job.error)]},
  error: {name: 'Last error', cls: 'text', cell: (job) =>
    job.error ? foreign(job.error) : ''},
  size: {name: 'Body', cls: 'num', cell: (job) => sizeText(job.body_bytes)},
};

function columnsOf(state, isBounded, picked) {
  const pick = {label: 'Choose', bare: true, cell: (job) => h('input', {
    type: 'checkbox', 'data-change': 'pick', value: job.id,
    'aria-label': 'Choose ' + visible(job.id), checked: picked.has(job.id)})};
  const {id, group, due, died, worker, since, attempt, why, error, size} =
    jobColumns;
  return [
    state === 'dead' && mayAct && pick, id, isBounded && group,
    (state === 'scheduled' || state === 'ready') && due,
    state === 'running' && worker, state === 'running' && since,
    state === 'dead' && died, attempt,
    state === 'dead' ? why : error, size].filter(Boolean);
}

/* What was looked for; the same text is kept while the reader types. */
function jobSearch(topic) {
  return h('form', {class: 'inline', 'data-form': 'open'},
    h('input', {type: 'search', id: 'search', name: 'id', maxlength: 128,
      placeholder: 'Id of a job  ( / )', 'aria-label': 'Id of a job in ' + topic,
      autocomplete: 'off', spellcheck: 'false'}),
    h('button', {}, 'Open'));
}

function groupsPanel(groups, where) {
  return h('div', {class: 'panel'},
    h('h2', {}, where ? 'Why they died that the filter takes'
      : 'Why they died'),
    table('Dead jobs by reason', [
      {name: 'Reason', cls: 'text', bare: true, cell: (group) =>
        [h('b', {}, visible(group.reason || 'unknown')),
          group.error && [': ', foreign(group.error)]]},
      {name: 'Jobs', cls: 'num', cell: (group) => whole.format(group.count)},
      {name: 'First', cell: (group) => timeNode(group.first_ms)},
      {name: 'Last', cell: (group) => timeNode(group.last_ms)},
      {label: 'Actions', bare: true, cell: (group) => mayAct && [
        button('Requeue', 'requeueGroup', group.key, 'tight'), ' ',
        button('Delete', 'deleteGroup', group.key, 'tight danger')]},
    ], groups.groups, (group) => group.key),
    !groups.complete && h('p', {class: 'notice'},
      `Of the oldest ${whole.format(groups.looked_at)} dead jobs.`),
    groups.others > 0 && h('p', {class: 'notice'},
      `${whole.format(groups.others)} more died in other ways.`));
}

function topicView(topic) {
  const tabs = STATES.concat('groups', 'workers', 'options');
  const self = {name: 't/' + topic, tab: 'topics', title: topic,
    up: topicsAddress(), history: {}, picked: new Set(), where: '',
    typed: null};
  const path = topicPath(topic);
  const isBounded = () => self.row && self.row.kind === 'bounded';
  const stateTab = () => STATES.includes(self.at);
  /* Where pages begin, as far as they were turned to: [1] is the first one's. */
  let begins = [];

  const goToList = (values) => {
    const {tab, where, page, after} = {tab: self.at, where: self.where,
      page: 1, ...values};
    return goTo(addressOf(['t', topic, tab], {where,
      ...(page > 1 ? {page, after} : {})}));
  };
  self.take = (fields, tab) => {
    const where = fields.get('where') || '';
    if (tab !== self.asked || where !== self.where) {
      self.picked.clear();
      begins = [];
    }
    self.after = fields.get('after') || '';
    self.page = ((self.after || tab === 'workers') &&
      Number(fields.get('page'))) || 1;
    begins[self.page] = self.after;
    Object.assign(self, {asked: tab, at: tabs.includes(tab) ? tab : '', where,
      typed: null, isChanged: true, groupsUntil: 0});
  };

  /* With a filter each job is looked at for them: not as often. */
  async function readGroups() {
    if (self.groups && self.groupsFor === self.at &&
        Date.now() < self.groupsUntil)
      return self.groups;
    self.groupsUntil = self.where ? Date.now() + 10000 : 0;
    self.groupsFor = self.at;
    return get(path + '/groups' + query(self.at === 'groups' ? {by: 'group'}
      : {where: self.where}));
  }

  async function loadTab() {
    const read = {jobs: null, options: null, groups: null, workers: null,
      filterError: ''};
    try {
      if (stateTab())
        read.jobs = await get(path + '/jobs' + query({state: self.at,
          after: self.after, limit: PAGE, where: self.where}));
      if (self.at === 'options')
        read.options = (await get(path + '/options')).options;
      if (self.at === 'workers')
        read.workers = await get('api/workers' + query({topic, limit: PAGE,
          offset: (self.page - 1) * PAGE}));
      if (self.at === 'groups' || (self.at === 'dead' && self.page === 1 &&
          self.row.dead > 0))
        read.groups = await readGroups();
    } catch (error) {
      if (error.status !== 400) throw error;
      read.filterError = error.message;
    }
    Object.assign(self, read);
  }

  self.load = async () => {
    self.told = await get(path);
    self.row = self.told.topic;
    if (!self.at)
      self.at = STATES.find((state) => state === 'ready' && self.row.ready > 0) ||
          STATES.find((state) => self.row[state] > 0) || 'ready';
    const isDue = !self.tabRead || Date.now() - self.tabRead > 2000;
    if (isDue || self.isChanged) {
      if (self.isChanged) self.groupsUntil = 0;
      self.isChanged = false;
      await loadTab();
      self.tabRead = Date.now();
    }
    historyOf(self, [topic]);
  };

  function tabPanel() {
    if (self.at === 'options') return optionsPanel(self.options || {});
    if (self.at === 'workers') return serversPanel(self.workers ||
      {found: 0, offset: 0, workers: []});
    if (self.at === 'groups') return eventsPanel(self.groups);
    const jobs = (self.jobs ? self.jobs.jobs : [])
      .map((job) => ({...job, topic}));
    return [
      h('div', {class: 'bar'}, jobSearch(topic), whereSearch(self)),
      whereState(self),
      self.at === 'dead' && mayAct && self.row.dead > 0 &&
        h('div', {class: 'bar'},
          self.picked.size > 0 && [
            button(`Requeue ${self.picked.size} chosen`, 'requeuePicked', ''),
            button(`Delete ${self.picked.size} chosen`, 'deletePicked', '',
              'danger')],
          h('span', {class: 'grow'}),
          button('Requeue …', 'requeueMany', '', 'main'),
          button('Delete …', 'deleteMany', '', 'danger')),
      self.jobs && self.jobs.failed > 0 && h('p', {class: 'notice'},
        `The filter failed on ${plural(self.jobs.failed, 'job')}.`),
      self.filterError && h('p', {class: 'problem', role: 'alert'},
        visible(self.filterError)),
      self.groups && self.groups.groups.length > 0 &&
        groupsPanel(self.groups, self.where),
      h('div', {class: 'panel'}, jobs.length === 0
        ? h('p', {class: 'empty'}, self.where
          ? `No job here that is ${self.at} matches` + (self.jobs &&
            self.jobs.next ? ' on this page: see the next one.' : '.')
          : `No job is ${self.at}.`)
        : table(`Jobs that are ${self.at}`,
          columnsOf(self.at, isBounded(), self.picked), jobs,
          (job) => 'j' + job.id)),
      pages(self.page > 1, Boolean(self.jobs && self.jobs.next),
        jobs.length || self.page > 1 ? `Page ${self.page}` : ''),
    ];
  }

  self.render = () => {
    const {row} = self;
    if (row.away)
      return [h('h1', {}, foreign(topic)), h('p', {class: 'problem'},
        'The node that has this topic does not answer.')];
    const hour = self.history[topic] || {};
    const late = row.lateness_ms || {};
    return [
      h('p', {class: 'crumbs'}, h('a', {href: topicsAddress()}, 'Topics')),
      h('div', {class: 'title'}, h('h1', {}, foreign(topic)), badges(row),
        mayAct && h('div', {class: 'actions'}, pauseButton(row))),
      readOnly(),
      h('div', {class: 'tiles'},
        STATES.map((state) => tile(state, countText(row, state, whole), state)),
        tile('oldest ready', ageNode(row.oldest_ms)),
        row.relaying > 0 && tile('relaying', whole.format(row.relaying)),
        row.dropped && [['overflow', 'dropped, full'], ['age', 'dropped, old'],
          ['ttl', 'dropped, idle']].map(([why, name]) =>
          tile(name, short.format(row.dropped[why])))),
      h('p', {class: 'totals'}, 'Since it exists: ', TOTALS.map((name, i) =>
        [i > 0 && ' · ', h('b', {}, whole.format(row[name + '_total'])), ' ',
          name])),
      h('div', {class: 'plots'},
        plot('Done', hour.rate, rateText, row.rate),
        plot('Lateness p99', hour.lateness_ms, spanText, late.p99)),
      h('div', {role: 'tablist', 'aria-label': 'Jobs by state'}, tabs
        .filter((tab) => tab !== 'groups' || isBounded())
        .map((tab) => h('button', {role: 'tab', type: 'button', 'data-do': 'tab',
          'data-with': tab, id: 'tab-' + tab, tabindex: tab === self.at ? 0 : -1,
          'aria-selected': String(tab === self.at), 'aria-controls': 'jobs'},
        STATES.includes(tab) && shape(tab),
        tab[0].toUpperCase() + tab.slice(1),
        STATES.includes(tab) && h('span', {class: 'quiet'},
          countText(row, tab, short))))),
      h('div', {role: 'tabpanel', id: 'jobs', 'aria-labelledby': 'tab-' + self.at},
        tabPanel()),
    ];
  };

  const effects = {
    requeue: 'They become ready now, their attempts count from 0.',
    delete: 'They are gone for good then.',
  };
  const groupText = (key) => {
    const group = (self.groups ? self.groups.groups : [])
      .find((one) => one.key === key);
    return group ? visible(group.reason + (group.error ? ': ' + group.error
      : '')) : 'of a group that is not shown any more';
  };
  /* What `body` says of the jobs that it is about. */
  const factsOf = (body) => facts([
    ['Topic', foreign(topic)],
    ['Died of', body.group ? groupText(body.group) : 'any reason'],
    ['Died since', body.since_ms && timeNode(body.since_ms)],
    ['Died before', body.until_ms && timeNode(body.until_ms)],
    ['Only where', body.where && foreign(body.where, 'id')]]);
  const count = async (body) => {
    const told = await post(path + '/dead/count', body);
    if (told.found === 0)
      throw new Error('No dead job matches.' + failedText(told));
    return {...told, body};
  };
  const failedText = (told) => told.failed > 0
    ? ` The filter failed on ${plural(told.failed, 'job')}.` : '';
  const many = async (word, verb, done, told) => {
    const {body} = told;
    const ok = await question(`${verb} ${plural(told.found, 'dead job')}?`, [
      factsOf(body),
      told.failed > 0 && h('p', {class: 'problem'}, failedText(told),
        ' They stay as they are.'),
      h('p', {}, effects[word])], verb, {isDanger: word === 'delete'});
    if (!ok) return;
    self.isChanged = true;
    await act(`${path}/dead/${word}`, body, (result) =>
      `${plural(result[done], 'job')} ${done}` + (result[done] < result.found
        ? `; ${result.found - result[done]} had moved` : ''));
  };
  const manyOfGroup = async (key, ...words) => {
    try {
      await many(...words, await count({group: key,
        where: self.where || undefined}));
    } catch (error) {
      say(error.message, true);
    }
  };
  const askWhich = async (word, verb, done) => {
    const told = await question(verb + ' dead jobs', [
      h('label', {class: 'field'}, 'Why they died', h('select', {name: 'group'},
        h('option', {value: ''}, 'for any reason'),
        (self.groups ? self.groups.groups : []).map((group) =>
          h('option', {value: group.key}, groupText(group.key).slice(0, 80))))),
      h('label', {class: 'field'}, 'Died since (your time)', h('input',
        {type: 'datetime-local', name: 'since', step: 1})),
      h('label', {class: 'field'}, 'Died before (your time)', h('input',
        {type: 'datetime-local', name: 'until', step: 1})),
      whereField(self.where)], 'Count them', {check: (fields) => {
      const body = {group: fields.group || undefined,
        since_ms: momentOf(fields.since), until_ms: momentOf(fields.until),
        where: fields.where.trim() || undefined};
      if (Object.values(body).every((value) => value === undefined))
        body.all = true;
      return count(body);
    }});
    if (told) await many(word, verb, done, told);
  };
  const picked = async (word, verb, done) => {
    const ids = [...self.picked];
    const ok = await question(`${verb} ${plural(ids.length, 'dead job')}?`, [
      facts([['Topic', foreign(topic)], ['Jobs', [ids.slice(0, 5).map((id, i) =>
        [i > 0 && ', ', foreign(id, 'id')]), ids.length > 5 &&
        ` and ${ids.length - 5} more`]]]),
      h('p', {}, effects[word])], verb, {isDanger: word === 'delete'});
    if (!ok) return;
    self.picked.clear();
    self.isChanged = true;
    await act(`${path}/dead/${word}`, {ids}, (result) =>
      `${plural(result[done], 'job')} ${done}`);
  };
  self.does = {
    pause: () => pause(topic, true),
    resume: () => pause(topic, false),
    tab: (tab) => goToList({tab}),
    next: () => self.at === 'workers' ? goToList({page: self.page + 1})
      : self.jobs && self.jobs.next && goToList({page: self.page + 1,
        after: self.jobs.next}),
    /* where it begins is known unless the page was come to from elsewhere */
    previous: () => self.page > 1 && goToList(
      begins[self.page - 1] || self.at === 'workers'
        ? {page: self.page - 1, after: begins[self.page - 1]} : {}),
    unfilter: () => goToList({where: ''}),
    pick: (id, box) => {
      if (box.checked) self.picked.add(id);
      else self.picked.delete(id);
      show(self.render());
    },
    requeueGroup: (key) => manyOfGroup(key, 'requeue', 'Requeue', 'requeued'),
    deleteGroup: (key) => manyOfGroup(key, 'delete', 'Delete', 'deleted'),
    requeueMany: () => askWhich('requeue', 'Requeue', 'requeued'),
    deleteMany: () => askWhich('delete', 'Delete', 'deleted'),
    requeuePicked: () => picked('requeue', 'Requeue', 'requeued'),
    deletePicked: () => picked('delete', 'Delete', 'deleted'),
    unset: (name) => {
      self.isChanged = true;
      return act(path + '/options', {[name]: ''}, `${name} is as by default`);
    },
  };
  self.typing = (field) => {
    if (field.id !== 'where') return;
    self.typed = field.value;
    show(self.render());
  };
  self.forms = {
    open: (fields) => {
      if (fields.id) location.hash = jobLink(topic, fields.id.trim());
    },
    where: (fields) => goToList({where: fields.where.trim()}),
    set: async (fields, form) => {
      self.isChanged = true;
      const done = await act(path + '/options', {[fields.name]: fields.value},
        `${fields.name} is ${fields.value}; workers follow within 5 s, but ` +
        'those whose flags say otherwise');
      if (done) form.reset();
    },
  };
  return self;
}

/* A jq program over a job as weir show --json prints it. */
const whereField = (text) => h('label', {class: 'field'},
  'Where (a jq program over the job)', h('input', {name: 'where', value: text,
    autocomplete: 'off', spellcheck: 'false', class: 'id',
    placeholder: '.body.tenant == "north"'}));

const isTyping = (self) => self.typed !== null &&
  self.typed.trim() !== self.where;

const whereSearch = (self) => h('form', {class: 'inline', 'data-form': 'where'},
  h('input', {type: 'search', name: 'where', id: 'where', class: 'id',
    placeholder: 'where: .body.tenant == "north"', value: self.where,
    'aria-label': 'Only jobs of which this jq program is true',
    'aria-describedby': 'where-state', autocomplete: 'off',
    spellcheck: 'false'}),
  h('button', {class: isTyping(self) ? 'main' : null}, 'Filter'));

/* Which filter is in force, whatever stands in the field. */
const whereState = (self) => h('p', {class: 'where small', id: 'where-state'},
  self.where ? ['Only where ', foreign(self.where, 'id'), ' ',
    button('Show all', 'unfilter', '', 'tight', {disabled: false})]
    : isTyping(self) && h('span', {class: 'quiet'}, 'All are shown.'),
  isTyping(self) && h('span', {class: 'warn'},
    ' ▲ What you typed is not in force: Enter applies it.'));

function optionsPanel(options) {
  const rows = Object.entries(options).map(([name, value]) => ({name, value}));
  return [
    h('div', {class: 'panel'}, rows.length === 0
      ? h('p', {class: 'empty'}, 'Nothing is stored with this topic: workers ' +
        'serve it as their files and flags say.')
      : table('Options', [
        {name: 'Option', cls: 'name', bare: true, cell: (row) => foreign(row.name)},
        {name: 'Value', cls: 'text', cell: (row) => foreign(row.value, 'id')},
        {label: 'Actions', bare: true, cell: (row) => mayAct && row.name !== 'kind' &&
          button('Remove', 'unset', row.name, 'tight',
            {'aria-label': 'Remove ' + row.name})},
      ], rows, (row) => row.name)),
    mayAct && h('form', {class: 'bar', 'data-form': 'set'},
      h('input', {name: 'name', required: true, placeholder: 'concurrency',
        'aria-label': 'Name of an option', autocomplete: 'off', spellcheck: 'false'}),
      h('input', {name: 'value', required: true, placeholder: '10',
        'aria-label': 'Its value', autocomplete: 'off', spellcheck: 'false'}),
      h('button', {}, 'Set'),
      h('span', {class: 'quiet small'}, 'for every worker; ',
        'docs/configuration.md has all options')),
  ];
}

function eventsPanel(groups) {
  return [h('div', {class: 'panel'}, !groups || groups.groups.length === 0
    ? h('p', {class: 'empty'}, 'No event waits.')
    : table('Events by group', [
      {name: 'Group', cls: 'name', bare: true, cell: (group) =>
        foreign(group.group, 'id')},
      {name: 'Events', cls: 'num', cell: (group) => whole.format(group.count)},
      {name: 'Oldest', cell: (group) => timeNode(group.first_ms)},
      {name: 'Newest', cell: (group) => timeNode(group.last_ms)},
    ], groups.groups, (group) => group.key)),
  groups && !groups.complete && h('p', {class: 'notice'},
    `Of the first ${whole.format(groups.looked_at)} events.`)];
}
