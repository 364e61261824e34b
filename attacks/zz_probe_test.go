package attacks
import ("testing";"time";"context";"path/filepath";"math/rand/v2";"math";"os";"strconv"
"github.com/hushsum/hushsum/aggregation"
"github.com/hushsum/hushsum/simulation"
"github.com/hushsum/hushsum/noise"
"github.com/hushsum/hushsum/learning")
func env(s string,d float64)float64{ if v,err:=strconv.ParseFloat(os.Getenv(s),64);err==nil{return v};return d}
func TestZZProbe(t *testing.T){
 all,err:=learning.ReadDigits(filepath.Join(dataFolder(),"digits")); if err!=nil{t.Fatal(err)}
 perm:=rand.New(rand.NewPCG(1,1)).Perm(all.Len())
 P:=int(env("POOL",300)); parties:=int(env("PARTIES",10))
 pool,_:=all.Subset(perm[:P]); test,_:=all.Subset(perm[P:])
 H:=int(env("HIDDEN",0)); var model learning.Model=learning.Softmax{Features:64,Outputs:10}
 if H>0 {model=learning.MLP{Features:64,Hidden:[]int{H},Outputs:10}}
 for _,mode:=range []string{"plain","masked","plain+noise","masked+noise"}{
 acc:=make([]float64,1000)
 st:=time.Now()
 train:=func(m int) Trainer { return func(member []bool,r *rand.Rand)([]float64,error){
  var in []int
  for i,x:=range member{ if x{in=append(in,i)}}
  d,_:=pool.Subset(in)
  ps,_,err:=learning.Partition("iid",d,nil,learning.PartitionOptions{Clients:parties,Seed:r.Uint64()})
  if err!=nil{return nil,err}
  tr:=simulation.Training{Model:model,Parties:ps,Test:test,Rounds:int(env("ROUNDS",20)),Local:learning.SGD{Rate:env("RATE",.5),Steps:int(env("STEPS",5))},Seed:r.Uint64(),EvaluateEvery:1000}
  if mode=="masked"||mode=="masked+noise"{tr.Mask=aggregation.GradientMask{Kind:aggregation.SoftMask,Threshold:.4}}
  if len(mode)>8{ tr.Sum=simulation.Ring; tr.Noise=&simulation.Noise{Law:noise.FamilyDiscreteGaussian,Multiplier:env("Z",4),Clip:env("CLIP",1),Bits:20}; tr.Rounds=int(env("NROUNDS",8))}
  out,err:=simulation.Train(context.Background(),tr,nil)
  if err!=nil{return nil,err}
  if r.Uint64()%16==0 { t.Log(mode,"test acc",out.Final().Accuracy(),"eps",out.Rounds[len(out.Rounds)-1].Server.Upper) }
  sc:=make([]float64,P*10)
  if err:=model.Scores(sc,out.Model,pool);err!=nil{return nil,err}
  lg:=make([]float64,P)
  for i:=range lg{ y:=pool.Labels[i]; mx:=math.Inf(-1); s:=0.0
   for k,v:=range sc[i*10:i*10+10]{ if k!=y{mx=max(mx,v)}}
   for k,v:=range sc[i*10:i*10+10]{ if k!=y{s+=math.Exp(v-mx)}}
   lg[i]=sc[i*10+y]-mx-math.Log(s)}
  return lg,nil}}
 models:=int(env("MODELS",32))
 s,err:=TrainShadows(context.Background(),Options{},7,models,P,train(0)); if err!=nil{t.Fatal(err)}
 _=acc
 el:=time.Since(st)
 a,_:=s.Regress(); b,_:=s.LiRA()
 ma,_:=Judge(a,1e-3); mb,_:=Judge(b,1e-3)
 right:=0; for _,x:=range a{ if (x.Score>0)==x.Member{right++}}
 rb:=0; for _,x:=range b{ if (x.Score>0)==x.Member{rb++}}
 t.Logf("%s %v per model; regress acc %.3f auc %.3f; lira acc %.3f auc %.3f tpr %.4f",mode,el/time.Duration(models),float64(right)/float64(len(a)),ma.AUC,float64(rb)/float64(len(b)),mb.AUC,mb.TPR)
 }
}
