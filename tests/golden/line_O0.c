/* ---- State ---- */

/* Everything that outlives a step. One block of memory holds the buffers. */
typedef struct State {
    uint64_t seed;
    int threads;
    RtBlock block;
    struct { /* sgd */
        float *weight;                       /* weights */
        float *gradient;                     /* f32 */
        float *momentum_buffer;
        int64_t step;                        /* updates taken */
        double lr;                           /* of the last step */
    } opt;
    RtScaler scaler;                         /* of the loss */
    struct { /* train fit */
        int64_t step, steps;                 /* attempted, planned in all */
        int64_t epoch, row;                  /* where the next step begins */
        int64_t skipped;                     /* steps that an optimizer skipped */
        float loss;
    } fit;
    char *arena;                             /* values that live within a step */
    RtScratch scratch;                       /* of the matrix products */
} State;

/* ---- Parameters ---- */

/* Where each weight begins in the flat buffers of opt. */
enum {
    NET_FC_WEIGHT = 0,                       /* [1, 1] */
    NET_FC_BIAS = 32,                        /* [1] */
    OPT_ELEMENTS = 64,
    OPT_PARAMS = 2
};

static const RtParam opt_param[OPT_PARAMS] = {
    {"net", "fc.weight", NET_FC_WEIGHT, 1, 2, {1, 1}, {RT_INIT_UNIFORM, -1.0f, 1.0f}},
    {"net", "fc.bias", NET_FC_BIAS, 1, 1, {1}, {RT_INIT_UNIFORM, -1.0f, 1.0f}},
};

enum { ARENA_BYTES = 128 };

/* Cuts the block into the buffers of the state. */
static void state_layout(State *s)
{
    RtBlock *b = &s->block;
    s->opt.weight = (float *)rt_cut(b, OPT_ELEMENTS, sizeof(float));
    s->opt.gradient = (float *)rt_cut(b, OPT_ELEMENTS, sizeof(float));
    s->opt.momentum_buffer = (float *)rt_cut(b, OPT_ELEMENTS, sizeof(float));
    s->arena = (char *)rt_cut(b, ARENA_BYTES, 1);
    s->scratch.data = rt_cut(b, s->scratch.bytes, 1);
}

/* Takes all memory and draws the first weights; seed and threads are set. */
static int state_create(State *s)
{
    s->scratch.bytes = rt_gemm_scratch(RT_F32, RT_FUSED, 16, 1, 16, s->threads);
    state_layout(s);
    int status = rt_block_take(&s->block);
    if (status)
        return status;
    state_layout(s);
    for (int i = 0; i < OPT_PARAMS && !status; i++)
        status = rt_param_init(&opt_param[i], s->seed, s->opt.weight + opt_param[i].offset);
    s->scaler = rt_scaler_make_static(1.0f);
    return status;
}

static void state_destroy(State *s)
{
    rt_block_free(&s->block);
}

/* Lists what a checkpoint holds. */
static void state_table(State *s, RtTable *t)
{
    for (int i = 0; i < OPT_PARAMS; i++) {
        const RtParam *p = &opt_param[i];
        rt_table_add(t, "param/", p, "", RT_ST_F32, s->opt.weight + p->offset);
        rt_table_add(t, "opt/opt/", p, ".momentum_buffer", RT_ST_F32,
                     s->opt.momentum_buffer + p->offset);
    }
    rt_table_scalar(t, "opt/opt.step", RT_ST_I64, &s->opt.step);
    rt_table_scalar(t, "scaler/scaler.scale", RT_ST_F32, &s->scaler.scale);
    rt_table_scalar(t, "scaler/scaler.growth", RT_ST_I32, &s->scaler.growth);
    rt_table_scalar(t, "scaler/scaler.hysteresis", RT_ST_I32, &s->scaler.hysteresis);
    rt_table_scalar(t, "scaler/scaler.skips", RT_ST_I64, &s->scaler.skips);
    rt_table_scalar(t, "train/fit.step", RT_ST_I64, &s->fit.step);
    rt_table_scalar(t, "train/fit.epoch", RT_ST_I64, &s->fit.epoch);
    rt_table_scalar(t, "train/fit.row", RT_ST_I64, &s->fit.row);
}

/* Lists the weights of an instance, called as weight files do. */
static void weight_table(State *s, RtTable *t, const char *instance)
{
    for (int i = 0; i < OPT_PARAMS; i++)
        if (!strcmp(opt_param[i].instance, instance))
            rt_table_add(t, "", &opt_param[i], "", RT_ST_F32, s->opt.weight + opt_param[i].offset);
}

/* ---- Kernels ---- */

// return fc(x);                                                   line.amp:11
// loss = mse(net(x), y);                                          line.amp:19
typedef struct fit_d_fc_args {
    float *fc_mse_terms;      // f32[N, 1]
    float *d_fc;              // f32[N, 1]
    const float *net_fc_bias; // f32[1]
    const float *y;           // f32[N, 1]
    int64_t N;
} fit_d_fc_args;

RT_LEAF void fit_d_fc(const void *args, int64_t m, int64_t n, int64_t count,
        const float *restrict acc)
{
    const fit_d_fc_args *a = (const fit_d_fc_args *)args;
    float *restrict fc_mse_terms = a->fc_mse_terms;
    float *restrict d_fc = a->d_fc;
    const float *restrict net_fc_bias = a->net_fc_bias;
    const float *restrict y = a->y;
    const int64_t N = a->N;
    (void)n;
    const float t = 1.0f / (float)N;
    const float y_i = y[m];
    for (int64_t j = 0; j < count; j++) {
        const float fc = acc[j] + net_fc_bias[0];
        fc_mse_terms[m] = (fc - y_i) * (fc - y_i);
        d_fc[m] = t * (2.0f * (fc - y_i));
    }
}

// loss = mse(net(x), y);                                          line.amp:19
RT_LEAF void fit_loss(
        float *restrict loss_report,        // f32
        const float *restrict fc_mse_terms, // f32[N, 1]
        int64_t N)
{
    float loss_lane[RT_LANES] = {0};
    for (int64_t block = 0; block < N; block += RT_LANES) {
        const int64_t width = N - block < RT_LANES ? N - block : RT_LANES;
        for (int64_t l = 0; l < width; l++) {
            const int64_t j = block + l;
            loss_lane[l] += fc_mse_terms[j];
        }
    }
    const float loss = rt_fold32(loss_lane);
    loss_report[0] = loss / (float)N;
}

// return fc(x);                                                   line.amp:11
// loss = mse(net(x), y);                                          line.amp:19
RT_LEAF void fit_d_fc_bias(int64_t lo, int64_t hi,
        float *restrict d_fc_bias,  // f32[1]
        const float *restrict d_fc, // f32[N, 1]
        int64_t N)
{
    for (int64_t column = lo; column < hi; column += 64) {
        const int64_t width = hi - column < 64 ? hi - column : 64;
        float d_fc_bias2[64] = {0};
        for (int64_t i = 0; i < N; i++) {
            for (int64_t l = 0; l < width; l++) {
                d_fc_bias2[l] += d_fc[i];
            }
        }
        for (int64_t l = 0; l < width; l++) {
            d_fc_bias[0] = d_fc_bias2[l];
        }
    }
}

// return fc(x);                                                   line.amp:11
typedef struct fit_d_fc_weight_args {
    float *d_fc_weight; // f32[1, 1]
} fit_d_fc_weight_args;

RT_LEAF void fit_d_fc_weight(const void *args, int64_t m, int64_t n, int64_t count,
        const float *restrict acc)
{
    const fit_d_fc_weight_args *a = (const fit_d_fc_weight_args *)args;
    float *restrict d_fc_weight = a->d_fc_weight;
    (void)m;
    (void)n;
    for (int64_t j = 0; j < count; j++) {
        d_fc_weight[0] = acc[j];
    }
}

/* ---- Optimizer opt ---- */

// optimizer opt = sgd(net, lr = 0.1);                                                  line.amp:17
typedef struct opt_hyper {
    float lr, momentum, dampening, weight_decay, nesterov, first;
} opt_hyper;

/* sgd on elements lo to hi. */
RT_LEAF void opt_sweep(int64_t lo, int64_t hi, opt_hyper h, float *restrict weight,
                       const float *restrict gradient, float *restrict momentum_buffer)
{
    const float lr = h.lr, momentum = h.momentum, dampening = h.dampening,
        weight_decay = h.weight_decay, nesterov = h.nesterov, first = h.first;
    for (int64_t i = lo; i < hi; i++) {
        float p = weight[i];
        float g = gradient[i];
        g = g + weight_decay * p;
        momentum_buffer[i] = first != 0 ? g : momentum * momentum_buffer[i] +
            (1.0f - dampening) * g;
        g = nesterov != 0 ? g + momentum * momentum_buffer[i] : momentum_buffer[i];
        p = p - lr * g;
        weight[i] = p;
    }
}

/* Applies the gradients. */
static void opt_update(State *s)
{
    s->opt.lr = 0.1;
    opt_hyper h;
    h.lr = (float)s->opt.lr;
    h.momentum = 0.0f;
    h.dampening = 0.0f;
    h.weight_decay = 0.0f;
    h.nesterov = 0.0f;
    s->opt.step++;
    h.first = s->opt.step == 1 ? 1.0f : 0.0f;
    RT_FOR(lo, hi, OPT_ELEMENTS, 4096,
           opt_sweep(lo, hi, h, s->opt.weight, s->opt.gradient, s->opt.momentum_buffer));
}

/* ---- Steps ---- */

// train fit(x: float[N, 1], y: float[N, 1]) on points                                  line.amp:14
static void fit_step(State *s, int64_t N, const float *x, const float *y)
{
    const float *net_fc_weight = s->opt.weight + NET_FC_WEIGHT;
    const float *net_fc_bias = s->opt.weight + NET_FC_BIAS;
    float *d_fc_weight = s->opt.gradient + NET_FC_WEIGHT;
    float *d_fc_bias = s->opt.gradient + NET_FC_BIAS;
    float *fc_mse_terms = (float *)(s->arena + 0);           /* [N, 1] */
    float *d_fc = (float *)(s->arena + 64);                  /* [N, 1] */
    float *loss_report = &s->fit.loss;
    const RtScratch scratch = s->scratch;

    rt_gemm(RT_F32, RT_FUSED, N, 1, 1, rt_matrix(x, 1, 0), rt_matrix(net_fc_weight, 0, 0),
            fit_d_fc, &(fit_d_fc_args){fc_mse_terms, d_fc, net_fc_bias, y, N}, scratch);
    fit_loss(loss_report, fc_mse_terms, N);
    RT_FOR(lo, hi, 1, 64, fit_d_fc_bias(lo, hi, d_fc_bias, d_fc, N));
    rt_gemm(RT_F32, RT_FUSED, 1, 1, N, rt_matrix(d_fc, 0, 1), rt_matrix(x, 1, 0), fit_d_fc_weight,
            &(fit_d_fc_weight_args){d_fc_weight}, scratch);
    opt_update(s);
    s->fit.step++;
}

/* ---- Data ---- */

typedef struct Data {
    RtDataset points;
    RtPart points_all;
} Data;

static double points_x(const RtSource *from, int64_t row, int64_t i)
{
    (void)i;
    return rt_source_value(from, row, 0);
}

static double points_y(const RtSource *from, int64_t row, int64_t i)
{
    (void)i;
    return rt_source_value(from, row, 1);
}

// dataset points = csv("points.csv")                                                    line.amp:5
static int load_points(Data *d, const char *path)
{
    RtSource from[1];
    int status = rt_csv_read(path, ',', 0, from);
    if (!status)
        status = rt_source_has_columns(from, path, 2);
    rt_dataset_start(&d->points, "points", from[0].rows);
    if (!status)
        status = rt_dataset_field(&d->points, "x", RT_KIND_F32, 1, points_x, from);
    if (!status)
        status = rt_dataset_field(&d->points, "y", RT_KIND_F32, 1, points_y, from);
    if (!status)
        status = rt_part_make(&d->points_all, &d->points, "all", NULL, 0, d->points.rows);
    rt_source_free(from);
    return status;
}

static void data_free(Data *d)
{
    rt_part_free(&d->points_all);
    rt_dataset_free(&d->points);
}

/* ---- Training ---- */

/* Written into checkpoints, and compared when they are read. */
static RtProgram this_program = {"0.1.0", "O0", "bf16", "apex", "d75c90f7f39851f0", 0};

/* The columns of the log. */
static const char *const columns[] = {"step", "entry", "epoch", "skipped", "ms_per_step", "lr.opt",
                                      "scale.scaler", "loss"};

/* Takes the weights of an instance from a file. */
static int load_weights(State *s, RtRun *run, const char *instance, const char *path)
{
    RtTable table = {NULL, 0, 0, 0};
    weight_table(s, &table, instance);
    int status = rt_table_status(&table);
    if (!status)
        status = rt_run_load_weights(run, path, table.entry, table.count);
    rt_table_free(&table);
    return status;
}

static int export_weights(State *s, const char *instance, const char *path)
{
    RtTable table = {NULL, 0, 0, 0};
    weight_table(s, &table, instance);
    int status = rt_table_status(&table);
    if (!status)
        status = rt_table_export(&table, path);
    rt_table_free(&table);
    return status;
}

/* Finds out where checkpoints go, and that they can be written. */
static int open_checkpoints(RtRun *run)
{
    return rt_run_checkpoints(run, "line.ckpt", 0);
}

static int save_checkpoint(State *s, RtRun *run)
{
    RtTable table = {NULL, 0, 0, 0};
    state_table(s, &table);
    int status = rt_table_status(&table);
    if (!status)
        status = open_checkpoints(run);
    if (!status)
        status = rt_run_save(run, s->fit.step, table.entry, table.count);
    rt_table_free(&table);
    return status;
}

/* Goes on from a checkpoint, if there is one. */
static int resume(State *s, RtRun *run)
{
    RtTable table = {NULL, 0, 0, 0};
    state_table(s, &table);
    int status = rt_table_status(&table);
    if (!status)
        status = open_checkpoints(run);
    if (!status)
        status = rt_run_resume(run, table.entry, table.count);
    rt_table_free(&table);
    return status;
}

static int log_fit(const State *s, RtRun *run)
{
    rt_run_row(run, "fit");
    rt_log_real(&run->log, RT_COLUMN_MS, run->ms);
    rt_log_real(&run->log, 5, s->opt.lr);
    rt_log_real(&run->log, 6, (double)run->scale[0]);
    rt_log_real(&run->log, 7, (double)s->fit.loss);
    return rt_log_row(&run->log);
}

// train fit(x: float[N, 1], y: float[N, 1]) on points                                  line.amp:14
static int train_fit(State *s, const Data *d, RtRun *run)
{
    RtBatches batches;
    int status = rt_batches_open(&batches, &d->points_all, 16, RT_SHUFFLE | RT_DROP_LAST, s->seed);
    if (!status)
        status = rt_batches_seek(&batches, s->fit.epoch, s->fit.row);
    s->fit.steps = batches.steps * 10;
    rt_run_begins(run, "fit", "loss", 10, s->fit.steps, s->fit.skipped);
    while (!status && s->fit.step < s->fit.steps && !rt_run_stopped(run)) {
        int64_t N;
        rt_run_step_begins(run, s->fit.epoch);
        run->scale[0] = s->scaler.scale;
        if ((status = rt_batches_next(&batches, &N)))
            break;
        fit_step(s, N, (const float *)rt_batches_field(&batches, 0),
                 (const float *)rt_batches_field(&batches, 1));
        s->fit.epoch = batches.epoch;
        s->fit.row = batches.row;
        rt_run_step_ends(run, s->fit.step, s->fit.skipped, (double)s->fit.loss, 0);
        if (rt_run_logs(run))
            status = log_fit(s, run);
        if (!status && rt_signal_take_save())
            status = save_checkpoint(s, run);
    }
    rt_batches_close(&batches);
    return status;
}

/* ---- Main ---- */

int main(int argc, char **argv)
{
    static State state;
    static Data data;
    static RtRun run;
    State *s = &state;
    int status = rt_run_open(&run, &this_program, "line", NULL, NULL, 0, argc, argv);
    if (status || run.done)
        return rt_run_close(&run, status);

    s->seed = this_program.seed = (uint64_t)run.seed;
    s->threads = rt_run_threads(&run);
    if (!status)
        status = load_points(&data, "points.csv");
    if (!status)
        status = state_create(s);
    if (!status && run.weights)
        status = load_weights(s, &run, "net", run.weights);
    if (!status && run.resume)
        status = resume(s, &run);
    if (!status)
        status = rt_run_open_log(&run, columns, 8);
    if (!status && !run.eval && !rt_run_stopped(&run))
        status = train_fit(s, &data, &run);
    if (!status && rt_signal_stop())
        status = save_checkpoint(s, &run);
    if (!status && run.dry_run)
        rt_run_tell_memory(&run, s->block.bytes);
    if (!status && run.export_path)
        status = export_weights(s, "net", run.export_path);
    state_destroy(s);
    data_free(&data);
    return rt_run_close(&run, status);
}
