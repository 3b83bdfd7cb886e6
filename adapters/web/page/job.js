/* SPDX-License-Identifier: MIT */

/* A job. */

function bodyText(body) {
  return (JSON.stringify(body, null, 2) ?? 'null').split('\n').map(visible)
    .join('\n');
}

const OUTCOMES = {retry: ['↻ ', ''], timeout: ['▲ ', 'warn'],
  fail: ['✕ ', 'bad'], crash: ['◆ ', 'bad']};

/* Those that did not finish the job; nothing where there are none. */
function attemptsPanel(attempts) {
  if (!attempts) return false;
  const rows = attempts.map((one, i) =>
    ({...one, key: `${one.ended_ms}/${i}`}));
  return h('div', {class: 'panel'}, h('h2', {}, 'Last attempts'),
    table('Attempts that did not finish the job, the newest first', [
      {name: 'Ended', cell: (one) => timeNode(one.ended_ms)},
      {name: 'Outcome', cell: (one) => h('span',
        {class: OUTCOMES[one.outcome][1]}, OUTCOMES[one.outcome][0],
        one.outcome)},
      {name: 'Why', cell: (one) => one.error && foreign(one.error)},
      {name: 'Worker', cell: (one) => one.worker && foreign(one.worker, 'id')},
    ], rows.reverse(), (one) => one.key));
}

function jobView(topic, id) {
  const self = {tab: 'topics', title: id, up: jobsAddress(topic), every: 2000};
  const path = jobPath(topic, id);
  const isDue = () => ['scheduled', 'ready'].includes(self.job.state);

  self.load = async () => {
    self.job = await ask(path, {}, parseExactly);
  };
  self.render = () => {
    const {job} = self;
    const counters = ['failures', 'timeouts', 'crashes', 'snoozes']
      .filter((name) => job[name] > 0)
      .map((name) => `${name} ${whole.format(job[name])}`);
    return [
      h('p', {class: 'crumbs'}, h('a', {href: topicsAddress()}, 'Topics'),
        ' › ', h('a', {href: jobsAddress(topic, job.state)}, foreign(topic))),
      h('div', {class: 'title'}, h('h1', {}, foreign(job.id, 'id')),
        h('span', {class: 'badge'}, shape(job.state), job.state),
        mayAct && h('div', {class: 'actions'},
          job.state === 'dead' && button('Requeue', 'requeue', '', 'main'),
          isDue() && button('Reschedule …', 'reschedule'),
          button('Delete …', 'delete', '', 'danger'))),
      readOnly(),
      h('div', {class: 'two'},
        h('div', {class: 'panel'}, h('h2', {}, 'The job'), facts([
          ['State', [shape(job.state), ' ', job.state]],
          [job.state === 'dead' ? 'Died' : 'Due', job.due_ms != null &&
            timeNode(job.due_ms)],
          job.added_ms != null && ['Added', timeNode(job.added_ms)],
          ['Group', job.group && foreign(job.group, 'id')],
          ['Attempts', `${job.attempt}` +
            (counters.length ? ` (${counters.join(', ')})` : '')],
          ['Reason', job.reason && visible(job.reason)],
          ['Last error', job.error && foreign(job.error)],
          job.state === 'running' && ['Worker', job.worker
            ? h('a', {href: workerLink(job.worker)}, foreign(job.worker, 'id'))
            : 'not told for this kind'],
          ['Claimed', job.claimed_ms > 0 && timeNode(job.claimed_ms)],
          ['Lease ends in', job.lease_left_ms > 0 &&
            spanText(job.lease_left_ms)],
          ['Lease', job.lease_left_ms === 0 &&
            'ended; runs again when a worker serves the topic'],
          ['Retry ladder', job.retry && visible(job.retry)],
          ['Time to live', job.ttl_ms != null && spanText(job.ttl_ms)],
          ['URL', job.url && foreign(job.url)],
          ['Key', job.key && foreign(job.key, 'id')],
          ['Priority', job.priority],
          ['Unique key', job.unique && foreign(job.unique, 'id')],
          ...Object.entries(job.headers || {}).map(([name, value]) =>
            [visible(name), foreign(value, 'id')]),
        ])),
        h('div', {class: 'panel'}, h('h2', {}, 'Body'),
          h('pre', {class: 'body', tabindex: 0, dir: 'ltr'},
            bodyText(job.body)))),
      attemptsPanel(job.attempts),
    ];
  };
  const leave = () => { goTo(jobsAddress(topic, self.job.state)); };
  self.does = {
    requeue: () => act(path + '/requeue', {}, 'It is ready again.'),
    delete: async () => {
      const ok = await question('Delete this job?', [
        facts([['Topic', foreign(topic)], ['Job', foreign(id, 'id')],
          ['State', self.job.state]]),
        h('p', {}, self.job.state === 'running'
          ? 'The run that goes on is not interrupted; its verdict is ignored.'
          : 'It is gone for good then.')], 'Delete',
      {isDanger: true, check: () => post(path + '/delete')});
      if (!ok) return;
      say(`${id} is deleted`);
      leave();
    },
    reschedule: async () => {
      const done = await question('Give it another due time', [
        facts([['Topic', foreign(topic)], ['Job', foreign(id, 'id')],
          ['Due', timeNode(self.job.due_ms)]]),
        h('label', {class: 'field'}, 'From now, such as 15s, 3m, 2h, 1d',
          h('input', {name: 'delay', autocomplete: 'off', placeholder: '15m'})),
        h('label', {class: 'field'}, 'or at (your time)', h('input',
          {type: 'datetime-local', name: 'at', step: 1}))], 'Reschedule',
      {check: (fields) => post(path + '/reschedule', {
        delay: fields.delay.trim() || undefined,
        at: fields.at ? new Date(fields.at).toISOString() : undefined})});
      if (!done) return;
      say('It has another due time.');
      await refresh();
    },
  };
  return self;
}
